/** The code blocks of the documents, and what their tags state. */

import { globSync, readFileSync } from 'node:fs';

/** What is read as a document: everything for readers but the notes of the code and of releases. */
export const DOCUMENTS: readonly string[] = globSync(['README.md', 'docs/**/*.md', 'deploy/**/README.md']).sort();

/** How a block is kept true. docs/testing.md tells what becomes of each. */
const KINDS = ['run', 'validated', 'illustrative'] as const;
type Kind = (typeof KINDS)[number];

/** The tags of README.md in the order of its blocks: there they would be read. */
const README_TAGS: readonly string[] = [
  'text illustrative="a figure"',
  'yaml run="shop.yaml"',
  'sh validated="it would run this test"',
  'sh validated="it installs for all users"',
  'sh run',
  'sh run',
  'ts run',
  'sh run',
];

/** One fenced block. */
export interface Block {
  readonly document: string;
  /** Of its fence, from 1 on. */
  readonly line: number;
  /** The heading of the second level that it stands under, `''` before the first. */
  readonly section: string;
  readonly language: string;
  readonly kind: Kind;
  /** What stands behind the kind, as in `run="config.yaml"`. */
  readonly detail: string | undefined;
  readonly text: string;
}

/** In a list it stands under the text of its item. */
const FENCE = /^( *)```(.*)$/;
const INFO = /^(\S+) (\w+)(?:="([^"]*)")?$/;

/**
 * The blocks of a document in their order.
 * @throws Error that names the line of a block whose info string has another form
 */
export function blocksOf(document: string): readonly Block[] {
  const blocks: Block[] = [];
  let section = '';
  let open: (Omit<Block, 'text'> & { readonly indent: number; readonly lines: string[] }) | undefined;
  for (const [index, text] of readFileSync(document, 'utf8').split('\n').entries()) {
    const [, indent = '', info] = FENCE.exec(text) ?? [];
    if (open === undefined) {
      if (text.startsWith('## ')) section = text.slice(3);
      if (info === undefined) continue;
      const where = `${document}:${index + 1}`;
      const tag = tagOf(document === 'README.md' ? listedTag(info, blocks.length, where) : info, where);
      open = { document, line: index + 1, section, ...tag, indent: indent.length, lines: [] };
    } else if (info === undefined) open.lines.push(text.slice(open.indent));
    else {
      const { lines, indent: _, ...block } = open;
      blocks.push({ ...block, text: `${lines.join('\n')}\n` });
      open = undefined;
    }
  }
  if (open !== undefined) throw new Error(`${document}:${open.line}: the block has no end`);
  return blocks;
}

/** @throws Error that names the line of a block of another language than the list has */
function listedTag(language: string, index: number, where: string): string {
  const listed = README_TAGS[index] ?? '';
  if (!listed.startsWith(`${language} `)) throw new Error(`${where}: the list of tags has '${listed}' for this block`);
  return listed;
}

function tagOf(info: string, where: string): Pick<Block, 'language' | 'kind' | 'detail'> {
  const [, language = '', name, detail] = INFO.exec(info) ?? [];
  const kind = KINDS.find((one) => one === name);
  if (kind === undefined)
    throw new Error(`${where}: the tag must be a language and one of ${KINDS.join(', ')}, not '${info}'`);
  if (kind === 'illustrative' && (detail ?? '').length < 5)
    throw new Error(`${where}: an illustrative block needs a reason, as in illustrative="needs a cluster"`);
  return { language, kind, detail };
}
