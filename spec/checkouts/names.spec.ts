import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KeyedCall } from '../../src/checkouts/attempts.ts';
import { fingerprintOf, namesOf } from '../../src/checkouts/names.ts';
import { parseStrictJson } from '../../src/json/json.ts';

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
    it(`ignores ${name}`, () => assert.equal(print(one), print(other)));

  for (const [name, one, other] of [
    ['null from absent', '{"a":null}', '{}'],
    ['the order of a list', '{"a":[1,2]}', '{"a":[2,1]}'],
    ['a number from its text', '{"a":1}', '{"a":"1"}'],
    ['composed from decomposed letters', '{"a":"\\u00e9"}', '{"a":"e\\u0301"}'],
    ['an empty list from an empty object', '{"a":[]}', '{"a":{}}'],
    ['an unknown member from none', '{"a":1,"x_extension":{"b":2}}', '{"a":1}'],
  ] as const)
    it(`distinguishes ${name}`, () => assert.notEqual(print(one), print(other)));

  it('cannot be made without the secret', () => {
    assert.notEqual(print('{}'), print('{}', Buffer.from('another secret of a test, as long as it')));
    assert.match(print('{}'), /^[A-Za-z0-9_-]{43}$/);
  });
});

const CALL: Omit<KeyedCall, 'body'> = {
  clientId: 'agent',
  operation: 'completeCheckoutSession',
  sessionId: 'cs_1',
  key: 'key-1',
};

const named = (change: Partial<KeyedCall> = {}, secret: Uint8Array = SECRET, deployment = 'merchant') =>
  namesOf(secret, deployment, { ...CALL, ...change });

describe('the names of a call', () => {
  it('make the same key another one for another client, operation, session, deployment, key or secret', () => {
    const records = [
      named(),
      named({ clientId: 'other' }),
      named({ operation: 'cancelCheckoutSession' }),
      named({ sessionId: 'cs_2' }),
      named({ key: 'key-2' }),
      named({}, Buffer.from('another secret of a test, as long as it')),
      named({}, SECRET, 'other'),
    ];
    assert.equal(new Set(records.map(({ record }) => record)).size, records.length);
    assert.equal(new Set(records.map(({ backendKey }) => backendKey)).size, records.length);
  });

  it('do not let one part run over into the next', () => {
    const one = named({ sessionId: 'a', key: 'bc' });
    assert.notEqual(one.record, named({ sessionId: 'ab', key: 'c' }).record);
  });

  it('name the session alike for every client, key and operation, and without a session not at all', () => {
    const { session } = named();
    assert.equal(named({ clientId: 'other', key: 'key-2', operation: 'cancelCheckoutSession' }).session, session);
    assert.notEqual(named({ sessionId: 'cs_2' }).session, session);
    assert.equal(named({ operation: 'createCheckoutSession', sessionId: undefined }).session, undefined);
  });

  it('reveal nothing of what they are made of', () => {
    const text = JSON.stringify(named());
    for (const part of ['agent', 'cs_1', 'key-1', 'merchant']) assert.ok(!text.includes(part), part);
  });
});
