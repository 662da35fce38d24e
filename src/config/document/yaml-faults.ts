/**
 * Words for the faults of the YAML parser. Its own messages quote the text, which may hold a
 * secret, so they only tell one cause from another here.
 */

import { type Document, isCollection, isScalar, visit } from 'yaml';

const NO_COLON = String.raw`^(?:MISSING_CHAR Implicit map|MULTILINE_IMPLICIT).*\n.*\n`;
const NAME = String.raw`["']?[\w.$-]+["']?`;

/** Causes in the parser's code and message, the line before the fault, and the rest of the line. */
const CAUSES: readonly (readonly [cause: RegExp, message: string])[] = [
  [/\$\n\{/, `a placeholder stands without quotes inside { } or [ ]; write "\${NAME}"`],
  [/(?:^|:)[ \t]*[\u00a0\u2007\u202f\u3000]/m, 'this line has a no-break space; write a plain one'],
  [/(?:^|[:-])[ \t]*[\u2018-\u201f]/m, 'this line has typographic quotes; write " or \''],
  [/\r[^\n]/, 'lines end with CR alone; save the file with LF'],
  [
    /^(?:ALIAS|BAD_ALIAS|MULTIPLE_ANCHORS)/,
    'an anchor or an alias (& or *) begins here, which are not read; write the value out, or put it in quotes',
  ],
  [
    /^(?:BAD_COLLECTION_TYPE|BAD_PROP_ORDER|MULTIPLE_TAGS|TAG_|MISSING_CHAR Tags)/,
    'a tag (!name) stands here, which is not read; remove it',
  ],
  [
    /^(?:BAD_DIRECTIVE|MISSING_CHAR (?:Missing directives|Block))/,
    'a directive or its end stands here, which are not read; remove the line',
  ],
  [/^BAD_DQ_ESCAPE/, 'a backslash in double quotes escapes nothing; write \\\\ for one, or use single quotes'],
  [
    /must end with|^BAD_INDENT Flow/,
    'a { or [ is not closed; write the } or ] behind its last member, on its line or indented',
  ],
  [/closing ["']quote/, 'a text in quotes ends nowhere; close it on its line'],
  [
    /^(?:BAD_INDENT|MISSING_CHAR Sequence)/,
    'this line is indented differently from what stands beside it; begin the keys of one mapping, and the dashes of one list, in one column',
  ],
  [/^BAD_SCALAR_START/, 'no value may begin with this character; put the value in quotes'],
  [/^BLOCK_AS_IMPLICIT_KEY.*\n.*\n.*:(?:\s|$)/, 'a value has a colon and a space inside; put it in quotes'],
  [
    /^BLOCK_AS_IMPLICIT_KEY/,
    'the next line is indented deeper than this key, which has a value; begin that line in the column of the key',
  ],
  [
    /^BLOCK_IN_FLOW/,
    'a comma is missing before a key in { }, or a value has a colon and a space inside and needs quotes',
  ],
  [/^KEY_OVER/, 'a key has more than 1,024 characters'],
  [new RegExp(`${NO_COLON}${NAME}:[^\\s:]`), 'a space is missing behind the colon; write key: value'],
  [new RegExp(`${NO_COLON}${NAME}\\s*=`), '= stands in the place of a colon; write key: value'],
  [new RegExp(NO_COLON), 'a colon is missing; write key: value'],
  [/^MISSING_CHAR Comments/, 'a space is missing before the #, or quotes if it begins no comment'],
  [/^MISSING_CHAR Missing [,s]/, 'a comma, or a colon and a space, is missing before this'],
  [
    /^MULTIPLE_DOCS/,
    'a second document begins here, and only one is read; remove this line, and what does not belong to the first',
  ],
  [/^NON_STRING_KEY/, 'a key is no text; put it in quotes'],
  [/^RESOURCE_EXHAUSTION/, 'this is nested too deeply to be read'],
  [/^TAB_AS_INDENT/, 'a tab indents this line; indent with spaces'],
  [/YAML stream.*\n.*\n[}\]]/, 'this closing bracket is too many; remove it'],
  [/Not a YAML token|Block scalar header/, 'text stands on the line of a | or >; begin it on the next line'],
  [/ Unexpected (?:,|empty)/, 'nothing stands before this comma; remove it'],
  [/at node end\n/, 'text stands behind the end of a value; put the whole value in quotes'],
  [/^/, 'this does not belong here; a comma, a quote or a bracket is missing before it, or is too much'],
];

/** Faults behind which a text is read as it was meant; behind any other one faults are guesses. */
const LOCAL = /^(?:BAD_COLLECTION_TYPE|BAD_DQ_ESCAPE|BAD_SCALAR_START|NON_STRING_KEY|TAG_RESOLVE_FAILED)$/;

/** The faults of the parser in words, up to the first that makes the rest unreadable. */
export function yamlFaults(
  text: string,
  document: Document,
): readonly { readonly offset: number; readonly message: string }[] {
  const errors = [...document.errors, ...document.warnings];
  const last = errors.findIndex(({ code }) => !LOCAL.test(code));
  return errors.slice(0, last < 0 ? undefined : last + 1).map(({ code, message: said, pos: [offset] }) => {
    const before = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset);
    const [behind = ''] = text.slice(offset, offset + 1_000).split('\n');
    const found = `${code} ${said}\n${before}\n${behind}`;
    const message = CAUSES.find(([cause]) => cause.test(found))?.[1] ?? '';
    return { offset: /closing .quote|end with/.test(said) ? startOf(document, offset) : offset, message };
  });
}

/** Where the innermost text or pair of brackets begins that reaches an offset. */
function startOf(document: Document, offset: number): number {
  let start = offset;
  visit(document, {
    Node: (_key, node) => {
      const [from, to] = node.range ?? [offset, offset];
      if (from < offset && to >= offset && (isScalar(node) || (isCollection(node) && node.flow))) start = from;
    },
  });
  return start;
}
