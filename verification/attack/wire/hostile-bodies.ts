/** An input that no channel may accept; text is UTF-8. */
export interface HostileInput {
  readonly name: string;
  readonly input: string | Buffer;
}

const bytes = (...given: readonly number[]): Buffer => Buffer.from(given);
const inString = (inner: Buffer): Buffer => Buffer.concat([Buffer.from('{"a":"'), inner, Buffer.from('"}')]);

/** Bytes that are no UTF-8, or that declare another encoding. */
export const ENCODINGS: readonly HostileInput[] = [
  { name: 'a byte order mark inside', input: Buffer.concat([bytes(0xef, 0xbb, 0xbf), Buffer.from('{}')]) },
  { name: 'UTF-16', input: Buffer.from('{"a":1}', 'utf16le') },
  { name: 'UTF-7', input: '+AHsAIgBhACIAOgAxAH0-' },
  { name: 'a byte that begins nothing', input: inString(bytes(0x80)) },
  { name: 'a sequence that breaks off', input: inString(bytes(0xe2, 0x82)) },
  { name: 'an overlong slash', input: inString(bytes(0xc0, 0xaf)) },
  { name: 'an overlong NUL', input: inString(bytes(0xc0, 0x80)) },
  { name: 'an encoded surrogate', input: inString(bytes(0xed, 0xa0, 0x80)) },
  { name: 'beyond U+10FFFF', input: inString(bytes(0xf4, 0x90, 0x80, 0x80)) },
  { name: 'Latin-1', input: inString(bytes(0xfc)) },
  { name: 'a NUL between members', input: Buffer.from('{"a":1\0}') },
  { name: 'a lone high surrogate', input: '{"a":"\\ud800"}' },
  { name: 'a lone low surrogate', input: '{"a":"\\udc00"}' },
  { name: 'surrogates in the wrong order', input: '{"a":"\\udc00\\ud800"}' },
  { name: 'a lone surrogate as a name', input: '{"\\ud800":1}' },
];

/** Texts that two parsers read differently. */
export const AMBIGUITIES: readonly HostileInput[] = [
  { name: 'a name twice', input: '{"amount":"1","amount":"2"}' },
  { name: 'a name twice, the same', input: '{"amount":"1","amount":"1"}' },
  { name: 'a name twice, deep', input: '{"a":[{"b":{"c":1,"d":2,"c":3}}]}' },
  { name: 'a name twice, once escaped', input: '{"amount":1,"\\u0061mount":2}' },
  { name: 'a name twice, once with an escaped slash', input: '{"a/b":1,"a\\/b":2}' },
  { name: 'an empty name twice', input: '{"":1,"":2}' },
  { name: 'a comment', input: '{"a":1/*,"b":2*/}' },
  { name: 'a comma at the end', input: '{"a":1,}' },
  { name: 'single quotes', input: "{'a':1}" },
  { name: 'a name without quotes', input: '{a:1}' },
  { name: 'NaN', input: '{"a":NaN}' },
  { name: 'Infinity', input: '{"a":-Infinity}' },
  { name: 'a hexadecimal number', input: '{"a":0x10}' },
  { name: 'an octal number', input: '{"a":010}' },
  { name: 'a number with plus', input: '{"a":+1}' },
  { name: 'a number without digits before the point', input: '{"a":.5}' },
  { name: 'a line break in a string', input: '{"a":"\n"}' },
  { name: 'two documents', input: '{"a":1}{"b":2}' },
];

/** Numbers that a double does not hold. */
export const NUMBERS: readonly HostileInput[] = [
  '12345678901234567890',
  '9007199254740993',
  '-9007199254740993',
  '1e400',
  '-1e400',
].map((number) => ({ name: number, input: `{"a":[${number}]}` }));

/** Members that reach a prototype in a careless copy. */
export const PROTOTYPES: readonly HostileInput[] = [
  '{"__proto__":{"polluted":1}}',
  '{"a":{"__proto__":null}}',
  '{"a":[{"b":{"constructor":{"prototype":{"polluted":1}}}}]}',
  '{"prototype":1}',
  '{"\\u005f_proto__":{"polluted":1}}',
  '{"__proto__":1,"a":2}',
].map((input) => ({ name: input, input }));
