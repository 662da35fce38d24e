import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseConfigText } from '../../../src/config/document/parse.ts';
import { ConfigError, type ConfigProblem, problemLine } from '../../../src/problems/problem.ts';

/** A text, and all that is said of it: line, column, path, what is wrong, what would be right. */
const FAULTS: readonly (readonly [title: string, text: string, ...found: readonly string[]])[] = [
  ['a tab for indentation', 'server:\n\tport: 1\n', '2:1 server: is indented with a tab; indent with spaces'],
  ['a tab deeper down', 'server:\n  host: a\n  \tport: 1\n', '3:3 server: is indented with a tab; indent with spaces'],
  [
    'a key indented less than the one beside it',
    'server:\n    port: 1\n  host: a\n',
    '3:1 server: is indented differently from what stands beside it; begin the keys of one mapping, and the dashes of one list, in one column',
  ],
  [
    'a key indented more than the one beside it',
    'server:\n  port: 1\n   host: a\n',
    '3:1 server.port: is indented deeper than the key above it, which has a value already; begin it in the same column',
  ],
  [
    'an item without its dash',
    'publish:\n  - index\n  llms\n',
    '3:1 publish: is indented differently from what stands beside it; begin the keys of one mapping, and the dashes of one list, in one column',
  ],
  [
    'a list beside keys',
    'server:\n  - a\n  port: 1\n',
    '3:1 server: is indented differently from what stands beside it; begin the keys of one mapping, and the dashes of one list, in one column',
  ],
  [
    'a quote that is not closed',
    'server:\n  host: "a\n  port: 1\n',
    '2:9 server.host: begins a text in quotes that ends nowhere; close it on its line',
  ],
  [
    'a single quote that is not closed',
    "server:\n  host: 'a\n",
    '2:9 server.host: begins a text in quotes that ends nowhere; close it on its line',
  ],
  [
    'a quote that the next one closes',
    'server:\n  host: "a\n  adminToken: "b"\n',
    '2:9 server.host: begins a text in quotes that ends nowhere; close it on its line',
  ],
  [
    'a brace that is not closed',
    'server: { port: 1\nbackend: { baseUrl: a }\n',
    '1:9 server: opens a { that is not closed; write the } behind its last member, on its line or indented',
  ],
  [
    'a brace that is not closed at the end',
    '{"server":{"port":1}',
    '1:11 server: opens a { that is not closed; write the } behind its last member, on its line or indented',
  ],
  [
    'a bracket that is not closed',
    'publish: [index\nversion: 1\n',
    '1:10 publish: opens a [ that is not closed; write the ] behind its last member, on its line or indented',
  ],
  [
    'a bracket too many',
    'server: { port: 1 }}\nversion: 1\n',
    '1:20 server.port: has a closing bracket too many; remove it',
  ],
  [
    'no space behind a colon',
    'server:\n  port:8402\n  host: a\n',
    '2:3 server: has no space behind the colon; write key: value',
  ],
  [
    'no space behind the last colon',
    'server:\n  host: a\n  port:8402\n',
    '3:3 server: has no space behind the colon; write key: value',
  ],
  [
    'an equals sign',
    'server:\n  port = 8402\n  host: a\n',
    '2:3 server: has = in the place of a colon; write key: value',
  ],
  ['a word alone', 'version: 1\nserver\n', '2:1 server: has no colon; write key: value'],
  [
    'a second document',
    'version: 1\n---\nserver:\n',
    '2:1 document: a second document begins here, and only one is read; remove this line, and what does not belong to the first',
  ],
  [
    'a value with @',
    'merchant:\n  name: @shop\n',
    '2:9 merchant.name: begins with @, which no value may begin with; put the value in quotes',
  ],
  [
    'a value with a backtick',
    'merchant:\n  name: `shop`\n',
    '2:9 merchant.name: begins with `, which no value may begin with; put the value in quotes',
  ],
  [
    'a value with %',
    'merchant:\n  name: %shop\n',
    '2:9 merchant.name: begins with %, which no value may begin with; put the value in quotes',
  ],
  [
    'two values that no plain text may begin with',
    'merchant:\n  id: @a\n  name: %b\n',
    '2:7 merchant.id: begins with @, which no value may begin with; put the value in quotes',
    '3:9 merchant.name: begins with %, which no value may begin with; put the value in quotes',
  ],
  [
    'a colon in a value',
    'merchant:\n  name: Shop: best\n',
    '2:9 merchant.name: has a colon and a space inside a value; put the value in quotes',
  ],
  [
    'a colon in a value in braces',
    'merchant: { name: Shop: best }\n',
    '1:19 merchant.name: has a comma missing before a key in { }, or a colon and a space inside a value, which then needs quotes',
  ],
  [
    'a missing comma in braces',
    'server: { port: 1 host: a }\n',
    '1:17 server.port: has a comma missing before a key in { }, or a colon and a space inside a value, which then needs quotes',
  ],
  [
    'a missing comma between texts',
    'publish: ["index" "llms"]\n',
    '1:19 publish[0]: needs a comma or a colon before it',
  ],
  ['a comma too many', 'publish: [index,, llms]\n', '1:17 publish[0]: has a comma with nothing before it'],
  [
    'text behind a quote',
    'merchant:\n  name: "Shop" best\n',
    '2:16 merchant.name: stands behind the end of a value; put the whole value in quotes',
  ],
  [
    'a backslash in double quotes',
    'storage:\n  sqlite: { path: "C:\\data" }\n',
    '2:22 storage.sqlite.path: has a backslash in double quotes that escapes nothing; write \\\\ for one, or use single quotes',
  ],
  [
    'a placeholder in braces',
    `server: { adminToken: \${TOKEN}, port: 1 }\n`,
    `1:24 server.adminToken: has a placeholder without quotes inside { } or [ ]; write "\${NAME}"`,
  ],
  [
    'a placeholder in brackets',
    `publish: [\${NAME}]\n`,
    `1:12 publish[0]: has a placeholder without quotes inside { } or [ ]; write "\${NAME}"`,
  ],
  [
    'a lone star',
    'server:\n  allowedOrigins: [*]\n',
    '2:20 server.allowedOrigins[0]: begins with & or *, an anchor or an alias, which are not read; write the value out, or put it in quotes',
  ],
  [
    'an alias',
    'server: &a { port: 1 }\nmanagement: *a\n',
    '2:13 management: is an alias (*name), which is not read; write the value out',
  ],
  [
    'a tag',
    'server:\n  adminToken: !vault a\n',
    '2:15 server.adminToken: has a tag (!name), which is not read; remove it',
  ],
  ['a wrong tag', 'server:\n  port: !!int a\n', '2:9 server.port: has a tag (!name), which is not read; remove it'],
  [
    'a comment without a space',
    'merchant:\n  name: "Shop"#one\n',
    '2:15 merchant.name: needs a space before the #, or quotes if it is no comment',
  ],
  [
    'text on the line of a |',
    'merchant:\n  name: |Shop\n    best\n',
    '2:10 merchant.name: has text on the line of a | or >; begin the text on the next line',
  ],
  [
    'text on the line of a >',
    'merchant:\n  name: > Shop\n',
    '2:11 merchant.name: has text on the line of a | or >; begin the text on the next line',
  ],
  [
    'a text that is indented less than it began',
    'resources:\n  a:\n    description: |\n        one\n      two\n',
    '5:1 resources: is indented differently from what stands beside it; begin the keys of one mapping, and the dashes of one list, in one column',
  ],
  ['a key that is a list', '? [server]\n: 1\n', '1:3 document: has a key that is no text; put it in quotes'],
  ['a directive', '%FOO\nversion: 1\n', '2:1 version: is a directive or its end; remove the line'],
  [
    'a no-break space',
    'version:\u00a01\nserver:\n  port: 1\n',
    '1:1 document: has a no-break space; write a plain one',
  ],
  [
    'typographic quotes',
    'merchant:\n  name: “Shop: best”\n',
    '2:9 merchant.name: has typographic quotes; write " or \'',
  ],
  [
    'line ends of CR alone',
    'version: 1\rserver: 1\r',
    '1:10 version: has line ends of CR alone; save the file with LF',
  ],
  ['a key of 1,100 characters', `${'a'.repeat(1100)}: 1\n`, '1:1 document: has a key of more than 1,024 characters'],
  ['a key twice', 'server:\n  port: 1\n  port: 2\n', '3:3 server.port: stands twice in one mapping; keep one'],
  ['a key twice in JSON', '{"server":{"port":1,"port":2}}', '1:21 server.port: stands twice in one mapping; keep one'],
  [
    'anchors',
    'a: &x &y 1\n',
    '1:7 document: begins with & or *, an anchor or an alias, which are not read; write the value out, or put it in quotes',
  ],
  ['tags', 'a: !x !y 1\n', '1:7 document: has a tag (!name), which is not read; remove it'],
];

function faultsOf(text: string): readonly ConfigProblem[] {
  try {
    parseConfigText(text);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('a text that is no document', () => {
  for (const [title, text, ...found] of FAULTS)
    it(`is told what is wrong, where, and what would be right: ${title}`, () =>
      assert.deepEqual(
        faultsOf(text).map((fault) => problemLine(fault).replace(/^line (\d+), column (\d+)/, '$1:$2')),
        found,
      ));

  it('shows the first key of the line and no value, and points at the fault', () => {
    const [fault] = faultsOf('server:\n  - adminToken: "a" b\n');
    assert.deepEqual(fault?.place?.excerpt, { text: '  - adminToken: …', caret: 16 });
  });

  it('shows a tab, and no key that the schema does not name', () => {
    const [fault] = faultsOf('server:\n\tb: 1\n');
    assert.deepEqual(fault?.place?.excerpt, { text: '→…', caret: 0 });
  });

  it('is read with the marks that editors leave: a byte order mark, line ends of CR and LF', () =>
    assert.deepEqual(parseConfigText('\ufeffversion: 1\r\nserver:\r\n  port: 1\r\n'), {
      version: 1,
      server: { port: 1 },
    }));
});
