import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { JsonError, MAX_JSON_DEPTH, MAX_JSON_MEMBERS, parseStrictJson } from '../../src/json/json.ts';

const utf8 = (text: string): Uint8Array => Buffer.from(text);
const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
const members = (count: number): string => `{${Array.from({ length: count }, (_, n) => `"k${n}":0`).join()}}`;
const reasonOf = (input: Uint8Array): JsonError['reason'] | 'ok' => {
  try {
    parseStrictJson(input);
    return 'ok';
  } catch (error) {
    assert.ok(error instanceof JsonError);
    return error.reason;
  }
};

describe('strict JSON refuses', () => {
  const ROWS: readonly (readonly [string, Uint8Array, JsonError['reason']])[] = [
    ['nothing', utf8(''), 'malformed_json'],
    ['a trailing comma', utf8('{"a":1,}'), 'malformed_json'],
    ['a comment', utf8('{}//'), 'malformed_json'],
    ['two documents', utf8('{}{}'), 'malformed_json'],
    ['single quotes', utf8("{'a':1}"), 'malformed_json'],
    ['NaN', utf8('NaN'), 'malformed_json'],
    ['a raw control character', utf8('"\n"'), 'malformed_json'],
    ['a byte order mark', bytes(0xef, 0xbb, 0xbf, 0x7b, 0x7d), 'malformed_json'],
    ['a lone continuation byte', bytes(0x22, 0x80, 0x22), 'malformed_json'],
    ['an overlong encoding', bytes(0x22, 0xc0, 0xaf, 0x22), 'malformed_json'],
    ['UTF-8 of a surrogate', bytes(0x22, 0xed, 0xa0, 0x80, 0x22), 'malformed_json'],
    ['UTF-16', Buffer.from('{}', 'utf16le'), 'malformed_json'],
    ['an escaped lone surrogate', utf8('"\\ud800"'), 'malformed_json'],
    ['a lone surrogate in a name', utf8('{"\\udc00":1}'), 'malformed_json'],
    ['a name twice', utf8('{"a":1,"a":1}'), 'duplicate_key'],
    ['a name twice in two spellings', utf8('{"a":1,"\\u0061":2}'), 'duplicate_key'],
    ['a name twice deep inside', utf8('[{"x":{"a":1,"b":[],"a":2}}]'), 'duplicate_key'],
    ['__proto__', utf8('{"__proto__":{}}'), 'forbidden_key'],
    ['__proto__ in escapes', utf8('{"\\u005f_proto__":{}}'), 'forbidden_key'],
    ['constructor', utf8('[{"constructor":1}]'), 'forbidden_key'],
    ['prototype', utf8('{"a":{"prototype":1}}'), 'forbidden_key'],
    ['one level too many', utf8(nested(MAX_JSON_DEPTH + 1)), 'too_deep'],
    ['one member too many', utf8(members(MAX_JSON_MEMBERS + 1)), 'too_many_members'],
    ['an integer a double rounds', utf8('9007199254740993'), 'number_out_of_range'],
    ['the first unsafe integer', utf8('[-9007199254740992]'), 'number_out_of_range'],
    ['a number beyond a double', utf8('{"a":1e400}'), 'number_out_of_range'],
  ];
  for (const [title, input, reason] of ROWS) it(`${title}: ${reason}`, () => assert.equal(reasonOf(input), reason));
  it('more levels than `maxDepth`, and not as many', () => {
    assert.doesNotThrow(() => parseStrictJson(utf8(nested(4)), 4));
    assert.throws(() => parseStrictJson(utf8(nested(5)), 4), { reason: 'too_deep' });
  });
  it('without quoting the document', () =>
    assert.throws(
      () => parseStrictJson(utf8('{"c4n4ry":1,"c4n4ry":c4n4ry}')),
      (error) => !String(error).includes('c4n4ry'),
    ));
});

describe('strict JSON accepts', () => {
  const ROWS: readonly (readonly [string, string])[] = [
    ['the deepest document', nested(MAX_JSON_DEPTH)],
    ['the most members', members(MAX_JSON_MEMBERS)],
    ['the largest safe integers', '[9007199254740991,-9007199254740991]'],
    ['fractions and exponents', '[0.1,-0.0,1e-400,1.5E+3,123456789012345678901234567890.0]'],
    ['the same name in two objects', '[{"a":1},{"a":{"a":2}}]'],
    ['a text that looks like a name', '{"a":"a","b":["a","a"]}'],
    ['escapes and quotes', '{"a\\"":"\\\\","b":"\\ud83d\\ude00:{[,"}'],
    ['white space around', ' \t\r\n{"a" : 1 }\n'],
    ['a bare value', 'null'],
  ];
  for (const [title, text] of ROWS) it(title, () => assert.deepEqual(parseStrictJson(utf8(text)), JSON.parse(text)));

  it('everything that JSON.stringify writes (in range), and reads the same value', () =>
    fc.assert(
      fc.property(fc.json({ maxDepth: 6, stringUnit: 'grapheme' }), (text) => {
        const reason = reasonOf(utf8(text));
        if (reason === 'ok') assert.deepEqual(parseStrictJson(utf8(text)), JSON.parse(text));
        else assert.ok(['forbidden_key', 'number_out_of_range'].includes(reason), reason);
      }),
      { numRuns: 3_000 },
    ));
  it('nothing that JSON.parse refuses', () =>
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0019.eE+- atrufalsn\n'), maxLength: 30 }), (text) => {
        if (reasonOf(utf8(text)) === 'ok') assert.doesNotThrow(() => JSON.parse(text));
      }),
      { numRuns: 20_000 },
    ));
  it('never a document with a name twice', () =>
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b', '\\u0061', 'c'), { maxLength: 5 }), (names) => {
        const text = `[{"o":{${names.map((name) => `"${name}":[1,{"x":"a"}]`).join()}}}]`;
        const plain = names.map((name) => (name === '\\u0061' ? 'a' : name));
        return reasonOf(utf8(text)) === (new Set(plain).size === plain.length ? 'ok' : 'duplicate_key');
      }),
    ));
});

describe('hostile documents are read quickly', () => {
  const SIZE = 262_144;
  const LIMIT_MS = 150;
  const ROWS: readonly (readonly [string, string])[] = [
    ['brackets only', '['.repeat(SIZE)],
    ['balanced brackets', nested(SIZE / 2)],
    ['nested objects', '{"a":'.repeat(SIZE / 5)],
    ['very many members', members(20_000)],
    ['one long string', JSON.stringify('x'.repeat(SIZE - 2))],
    ['one string of escapes', `"${'\\u0061'.repeat(SIZE / 6 - 1)}"`],
    ['an unfinished string of escapes', `"${'\\"'.repeat(SIZE / 2 - 1)}`],
    ['one long number', '1'.repeat(SIZE)],
    ['white space after a string', `["a"${' '.repeat(SIZE - 8)}]`],
    ['white space after many strings', `[${`"a"${' '.repeat(500)},`.repeat(500)}"a"]`],
    ['many small numbers', `[${'1,'.repeat(SIZE / 2 - 2)}1]`],
    ['names that differ late', members(9_000).replaceAll('k', 'k'.repeat(10))],
  ];
  for (const [title, text] of ROWS)
    it(title, () => {
      const input = utf8(text);
      const started = process.threadCpuUsage();
      reasonOf(input);
      const { user, system } = process.threadCpuUsage(started);
      const took = (user + system) / 1_000;
      assert.ok(took < LIMIT_MS, `${took} ms of CPU`);
    });
});
