/**
 * Words for the faults of the YAML parser. Its own messages quote the text, which may hold a
 * secret, so they only tell one cause from another here.
 */

import { type Document, isCollection, isScalar, visit, type YAMLError } from 'yaml';
import { Lines } from './lines.ts';

/** What is wrong with the text, and where: an offset in it. */
interface YamlFault {
  readonly offset: number;
  readonly words: string;
  /** It belongs to no key. */
  readonly ofDocument?: boolean;
}

interface Found {
  /** The parser's message. */
  readonly said: string;
  readonly offset: number;
  /** The line of the offset: all of it, and what is behind the offset. */
  readonly line: string;
  readonly behind: string;
  readonly text: string;
  readonly document: Document;
}

type Words = (found: Found) => string | YamlFault;

const ONE_COLUMN =
  'is indented differently from what stands beside it; begin the keys of one mapping, and the dashes of one list, in one column';
const COLON_INSIDE = 'has a colon and a space inside a value; put the value in quotes';
const NO_TAG = 'has a tag (!name), which is not read; remove it';
const NO_ALIAS =
  'begins with & or *, an anchor or an alias, which are not read; write the value out, or put it in quotes';
const NO_DIRECTIVE = 'is a directive or its end; remove the line';

const WORDS: Readonly<Record<YAMLError['code'], Words>> = {
  ALIAS_PROPS: () => NO_ALIAS,
  BAD_ALIAS: () => NO_ALIAS,
  BAD_COLLECTION_TYPE: () => NO_TAG,
  BAD_DIRECTIVE: () => NO_DIRECTIVE,
  BAD_DQ_ESCAPE: () =>
    'has a backslash in double quotes that escapes nothing; write \\\\ for one, or use single quotes',
  BAD_INDENT: (found) => {
    if (found.said.startsWith('Flow')) return unclosedBracket(found);
    if (found.said.startsWith('Block scalar'))
      return 'is a line of a text behind | or > that is indented less than the first one';
    return ONE_COLUMN;
  },
  BAD_PROP_ORDER: () => NO_TAG,
  BAD_SCALAR_START: ({ behind }) =>
    `begins with ${behind.slice(0, 1)}, which no value may begin with; put the value in quotes`,
  BLOCK_AS_IMPLICIT_KEY: ({ behind, offset }) =>
    /:(?:\s|$)/.test(behind)
      ? COLON_INSIDE
      : {
          offset: offset + behind.length + 1,
          words: 'is indented deeper than the key above it, which has a value already; begin it in the same column',
        },
  BLOCK_IN_FLOW: () =>
    'has a comma missing before a key in { }, or a colon and a space inside a value, which then needs quotes',
  DUPLICATE_KEY: () => 'is there already; keep one of the two',
  IMPOSSIBLE: () => 'cannot be read as YAML',
  KEY_OVER_1024_CHARS: () => 'has a key of more than 1,024 characters',
  MISSING_CHAR: (found) => {
    const { said } = found;
    if (said.includes('quote')) return unclosedQuote(found);
    if (said.includes('must end with')) return unclosedBracket(found);
    if (said.startsWith('Implicit map keys')) return noKey(found);
    if (said.startsWith('Comments')) return 'needs a space before the #, or quotes if it is no comment';
    if (said.startsWith('Missing , between')) return 'needs a comma before it';
    if (said.startsWith('Missing space')) return 'needs a space behind the colon';
    if (said.startsWith('Missing , or :')) return 'needs a comma or a colon before it';
    if (said.startsWith('Sequence item')) return 'stands in a list without its - and space';
    if (said.startsWith('Tags and anchors')) return NO_TAG;
    return NO_DIRECTIVE;
  },
  MULTILINE_IMPLICIT_KEY: noKey,
  MULTIPLE_ANCHORS: () => NO_ALIAS,
  MULTIPLE_DOCS: ({ offset }) => ({
    offset,
    words:
      'a second document begins here, and only one is read; remove this line, and what does not belong to the first',
    ofDocument: true,
  }),
  MULTIPLE_TAGS: () => NO_TAG,
  NON_STRING_KEY: () => 'has a key that is no text; put it in quotes',
  RESOURCE_EXHAUSTION: () => 'is nested too deeply to be read',
  TAB_AS_INDENT: () => 'is indented with a tab; indent with spaces',
  TAG_RESOLVE_FAILED: () => NO_TAG,
  UNEXPECTED_TOKEN: ({ said, behind }) => {
    if (said.includes('YAML stream') && /^[}\]]/.test(behind)) return 'has a closing bracket too many; remove it';
    if (said.startsWith('Not a YAML token') || said.startsWith('Block scalar header'))
      return 'has text on the line of a | or >; begin the text on the next line';
    if (said.startsWith('Unexpected ,') || said.startsWith('Unexpected empty item'))
      return 'has a comma with nothing before it';
    if (said.endsWith('at node end')) return 'stands behind the end of a value; put the whole value in quotes';
    return 'does not belong here; a comma, a quote or a bracket is missing before it, or is too much';
  },
};

/** Faults behind which a text is read as it was meant; behind any other one faults are guesses. */
const LOCAL: ReadonlySet<YAMLError['code']> = new Set([
  'BAD_COLLECTION_TYPE',
  'BAD_DQ_ESCAPE',
  'BAD_SCALAR_START',
  'NON_STRING_KEY',
  'TAG_RESOLVE_FAILED',
]);
const MOST_TOLD = 10;

/**
 * The faults of the parser in words, up to the first that makes the rest unreadable; of several on
 * one line the first, which causes the others.
 */
export function yamlFaults(text: string, document: Document): readonly YamlFault[] {
  const lines = new Lines(text);
  const told = new Map<number, YamlFault>();
  for (const { code, message, pos } of [...document.errors, ...document.warnings]) {
    const [offset] = pos;
    const { start, end } = lines.spot(offset);
    if (told.has(start)) continue;
    const [line, behind] = [text.slice(start, end), text.slice(offset, end)];
    const found = { said: message, offset, line, behind, text, document };
    const words = hiddenCause(found) ?? WORDS[code](found);
    const fault = typeof words === 'string' ? { offset, words } : words;
    told.set(start, fault);
    const isLocal = LOCAL.has(code) || fault.words === COLON_INSIDE;
    if (!isLocal || told.size === MOST_TOLD) break;
  }
  return [...told.values()];
}

/** What the parser takes for text, or for the begin of a mapping. */
function hiddenCause({ line, text, offset }: Found): string | undefined {
  if (text.startsWith('${', offset - 1)) return `has a placeholder without quotes inside { } or [ ]; write "\${NAME}"`;
  if (/(?:^|:)[ \t]*[\u00a0\u2007\u202f\u3000]/.test(line)) return 'has a no-break space; write a plain one';
  if (/(?:^|[:-])[ \t]*[\u2018-\u201f]/.test(line)) return 'has typographic quotes; write " or \'';
  return /\r(?!$)/.test(line) ? 'has line ends of CR alone; save the file with LF' : undefined;
}

/** A line of a mapping that is no `key: value`. */
function noKey({ behind }: Found): string {
  if (/^["']?[\w.$-]+["']?:[^\s:]/.test(behind)) return 'has no space behind the colon; write key: value';
  if (/^["']?[\w.$-]+["']?\s*=/.test(behind)) return 'has = in the place of a colon; write key: value';
  return 'has no colon; write key: value';
}

function unclosedQuote({ document, offset }: Found): YamlFault {
  return {
    offset: startOf(document, offset, (node) => isScalar(node)),
    words: 'begins a text in quotes that ends nowhere; close it on its line',
  };
}

function unclosedBracket({ document, offset, said }: Found): YamlFault {
  const [open, close] = said.includes('map') ? ['{', '}'] : ['[', ']'];
  return {
    offset: startOf(document, offset, (node) => isCollection(node) && node.flow === true),
    words: `opens a ${open} that is not closed; write the ${close} behind its last member, on its line or indented`,
  };
}

/** Where the innermost such node begins that reaches an offset. */
function startOf(document: Document, offset: number, wanted: (node: unknown) => boolean): number {
  let start = offset;
  visit(document, {
    Node: (_key, node) => {
      const [from, to] = node.range ?? [offset, offset];
      if (from < offset && to >= offset && wanted(node)) start = from;
    },
  });
  return start;
}
