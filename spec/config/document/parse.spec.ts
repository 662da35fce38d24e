import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseConfigText, readConfigText } from '../../../src/config/document/parse.ts';
import { ConfigError, problemLine } from '../../../src/problems/problem.ts';

type Text = readonly [at: string, text: string];

/** What is said, and texts of which it is said at this line and column. */
const FAULTS: readonly (readonly [message: string, ...texts: readonly Text[]])[] = [
  [
    'a tab indents this line; indent with spaces',
    ['2:1', 'server:\n\tport: 1\n'],
    ['3:3', 'server:\n  host: a\n  \tport: 1\n'],
  ],
  [
    'this line is indented differently from what stands beside it; begin the keys of one mapping, and the dashes of one list, in one column',
    ['3:1', 'server:\n    port: 1\n  host: a\n'],
    ['3:1', 'publish:\n  - index\n  llms\n'],
    ['3:1', 'server:\n  - a\n  port: 1\n'],
    ['5:1', 'resources:\n  a:\n    description: |\n        one\n      two\n'],
  ],
  [
    'the next line is indented deeper than this key, which has a value; begin that line in the column of the key',
    ['2:9', 'server:\n  port: 1\n   host: a\n'],
  ],
  [
    'a text in quotes ends nowhere; close it on its line',
    ['2:9', 'server:\n  host: "a\n  port: 1\n'],
    ['2:9', "server:\n  host: 'a\n"],
    ['2:9', 'server:\n  host: "a\n  adminToken: "b"\n'],
  ],
  [
    'a { or [ is not closed; write the } or ] behind its last member, on its line or indented',
    ['1:9', 'server: { port: 1\nbackend: { baseUrl: a }\n'],
    ['1:11', '{"server":{"port":1}'],
    ['1:10', 'publish: [index\nversion: 1\n'],
  ],
  ['this closing bracket is too many; remove it', ['1:20', 'server: { port: 1 }}\nversion: 1\n']],
  [
    'a space is missing behind the colon; write key: value',
    ['2:3', 'server:\n  port:8402\n  host: a\n'],
    ['3:3', 'server:\n  host: a\n  port:8402\n'],
  ],
  ['= stands in the place of a colon; write key: value', ['2:3', 'server:\n  port = 8402\n  host: a\n']],
  ['a colon is missing; write key: value', ['2:1', 'version: 1\nserver\n']],
  [
    'a second document begins here, and only one is read; remove this line, and what does not belong to the first',
    ['2:1', 'version: 1\n---\nserver:\n'],
  ],
  [
    'no value may begin with this character; put the value in quotes',
    ['2:9', 'merchant:\n  name: @shop\n'],
    ['2:9', 'merchant:\n  name: `shop`\n'],
    ['2:9', 'merchant:\n  name: %shop\n'],
  ],
  ['a value has a colon and a space inside; put it in quotes', ['2:9', 'merchant:\n  name: Shop: best\n']],
  [
    'a comma is missing before a key in { }, or a value has a colon and a space inside and needs quotes',
    ['1:19', 'merchant: { name: Shop: best }\n'],
    ['1:17', 'server: { port: 1 host: a }\n'],
  ],
  ['a comma, or a colon and a space, is missing before this', ['1:19', 'publish: ["index" "llms"]\n']],
  ['nothing stands before this comma; remove it', ['1:17', 'publish: [index,, llms]\n']],
  [
    'text stands behind the end of a value; put the whole value in quotes',
    ['2:16', 'merchant:\n  name: "Shop" best\n'],
  ],
  [
    'a backslash in double quotes escapes nothing; write \\\\ for one, or use single quotes',
    ['2:22', 'storage:\n  sqlite: { path: "C:\\data" }\n'],
  ],
  [
    `a placeholder stands without quotes inside { } or [ ]; write "\${NAME}"`,
    ['1:24', `server: { adminToken: \${TOKEN}, port: 1 }\n`],
    ['1:12', `publish: [\${NAME}]\n`],
  ],
  [
    'an anchor or an alias (& or *) begins here, which are not read; write the value out, or put it in quotes',
    ['2:20', 'server:\n  allowedOrigins: [*]\n'],
    ['1:7', 'a: &x &y 1\n'],
  ],
  [
    'a tag (!name) stands here, which is not read; remove it',
    ['2:15', 'server:\n  adminToken: !vault a\n'],
    ['2:9', 'server:\n  port: !!int a\n'],
    ['1:7', 'a: !x !y 1\n'],
  ],
  ['a space is missing before the #, or quotes if it begins no comment', ['2:15', 'merchant:\n  name: "Shop"#one\n']],
  [
    'text stands on the line of a | or >; begin it on the next line',
    ['2:10', 'merchant:\n  name: |Shop\n    best\n'],
    ['2:11', 'merchant:\n  name: > Shop\n'],
  ],
  ['a key is no text; put it in quotes', ['1:3', '? [server]\n: 1\n']],
  ['a directive or its end stands here, which are not read; remove the line', ['2:1', '%FOO\nversion: 1\n']],
  ['this line has a no-break space; write a plain one', ['1:1', 'version:\u00a01\nserver:\n  port: 1\n']],
  ['this line has typographic quotes; write " or \'', ['2:9', 'merchant:\n  name: “Shop: best”\n']],
  ['lines end with CR alone; save the file with LF', ['1:10', 'version: 1\rserver: 1\r']],
  ['a key has more than 1,024 characters', ['1:1', `${'a'.repeat(1100)}: 1\n`]],
];

/** All that is said of a text: its line, column, path and message. */
function faultsOf(text: string): readonly string[] {
  try {
    parseConfigText(text);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((fault) => problemLine(fault).replace(/^line (\d+), column (\d+)/, '$1:$2'));
  }
  return [];
}

const TWICE = 'stands twice in one mapping; keep one';
const ALIAS = 'is an alias (*name), which is not read; write the value out';

const REFUSED: readonly (readonly [text: string, ...found: readonly string[]])[] = [
  ['server: &a { port: 1 }\nmanagement: *a\n', `2:13 management: ${ALIAS}`],
  ['a: &x [*x]', `1:8 a[0]: ${ALIAS}`],
  ['a: &a [1]\nb: &b [*a,*a]\n', `2:8 b[0]: ${ALIAS}`, `2:11 b[1]: ${ALIAS}`],
  ['server:\n  port: 1\n  port: 2\n', `3:3 server.port: ${TWICE}`],
  ['{"server":{"port":1,"port":2}}', `1:21 server.port: ${TWICE}`],
  ['{"a":{"b":1,"\\u0062":2}}', `1:13 a.b: ${TWICE}`],
  ['{"a":[1,{"b":{},"c":"\\"}:","b":{}}]}', `1:28 a[1].b: ${TWICE}`],
  ['server:\n  Kx7vTq9 LmW: 1\n  Kx7vTq9 LmW: 2\n', `3:3 server["Kx7vTq9…"]: ${TWICE}`],
  [
    'merchant:\n  id: @a\n  name: %b\n',
    '2:7 document: no value may begin with this character; put the value in quotes',
    '3:9 document: no value may begin with this character; put the value in quotes',
  ],
];

describe('a text of a configuration', () => {
  for (const [message, ...texts] of FAULTS)
    for (const [at, text] of texts)
      it(`is told that ${message}: ${JSON.stringify(text.slice(0, 80))}`, () =>
        assert.deepEqual(faultsOf(text), [`${at} document: ${message}`]));

  for (const [text, ...found] of REFUSED)
    it(`is refused: ${JSON.stringify(text.slice(0, 80))}`, () => assert.deepEqual(faultsOf(text), found));

  it('is refused where it would exhaust the stack', () =>
    assert.match(faultsOf('['.repeat(100_000)).join(), /^1:\d+ document: this is nested too deeply to be read$/));

  it('may have the marks of editors: a byte order mark, line ends of CR and LF', () =>
    assert.deepEqual(parseConfigText('\ufeffversion: 1\r\nserver:\r\n  port: 1\r\n'), {
      version: 1,
      server: { port: 1 },
    }));

  it('may have texts that look like names, and the same name in two mappings', () => {
    const document = { a: { x: '"b":', y: ['a":', 'a', ': '] }, b: { x: '\\":', a: 'a' } };
    assert.deepEqual(parseConfigText(`\n ${JSON.stringify(document)}\n`), document);
  });

  it('has the same values and members as JSON and as YAML', () => {
    const document = fc.dictionary(fc.string({ unit: 'binary', maxLength: 8 }), fc.jsonValue({ maxDepth: 3 }));
    fc.assert(
      fc.property(document, fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        const [json, yaml] = [readConfigText(text), readConfigText(`${text} # YAML`)];
        assert.deepEqual(json.value, yaml.value);
        assert.deepEqual([...json.members()], [...yaml.members()]);
      }),
    );
  });
});
