import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fingerprintOf } from '../../src/checkouts/names.ts';
import { parseStrictJson } from '../../src/json/strict.ts';

const SECRET = Buffer.from('a secret of a test, long enough for it');

const print = (text: string, secret: Uint8Array = SECRET): string =>
  fingerprintOf(secret, parseStrictJson(Buffer.from(text)));

describe('the fingerprint of a body', () => {
  for (const [name, one, other] of [
    ['the order of members', '{"a":1,"b":{"c":2,"d":3}}', '{"b":{"d":3,"c":2},"a":1}'],
    ['1.0 and 1', '{"a":1.0}', '{"a":1}'],
    ['100 and 1e2', '{"a":1e2}', '{"a":100}'],
    ['white space', '{ "a" : [ 1 , 2 ] }\n', '{"a":[1,2]}'],
    ['an escape and its character', '{"a":"\\u00e9\\/"}', '{"a":"é/"}'],
  ] as const)
    it(`does not tell ${name} apart`, () => assert.equal(print(one), print(other)));

  for (const [name, one, other] of [
    ['null from absent', '{"a":null}', '{}'],
    ['the order of a list', '{"a":[1,2]}', '{"a":[2,1]}'],
    ['a number from its text', '{"a":1}', '{"a":"1"}'],
    ['composed from decomposed letters', '{"a":"\\u00e9"}', '{"a":"e\\u0301"}'],
    ['an empty list from an empty object', '{"a":[]}', '{"a":{}}'],
    ['a member nobody knows from none', '{"a":1,"x_extension":{"b":2}}', '{"a":1}'],
  ] as const)
    it(`tells ${name}`, () => assert.notEqual(print(one), print(other)));

  it('cannot be made without the secret', () => {
    assert.notEqual(print('{}'), print('{}', Buffer.from('another secret of a test, as long as it')));
    assert.match(print('{}'), /^[A-Za-z0-9_-]{43}$/);
  });
});
