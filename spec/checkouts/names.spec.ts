import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KeyedCall } from '../../src/checkouts/idempotency.ts';
import { namesOf } from '../../src/checkouts/names.ts';

const SECRET = Buffer.from('a secret of a test, long enough for it');
const CALL: Omit<KeyedCall, 'body'> = {
  clientId: 'agent',
  operation: 'completeCheckoutSession',
  sessionId: 'cs_1',
  key: 'key-1',
};

const named = (change: Partial<KeyedCall> = {}, secret: Uint8Array = SECRET, deployment = 'shop') =>
  namesOf(secret, deployment, { ...CALL, ...change });

describe('the names of a call', () => {
  it('are the same for the same call, and 43 characters of base64url each', () => {
    assert.deepEqual(named(), named());
    for (const name of Object.values(named())) assert.match(name, /^[A-Za-z0-9_-]{43}$/);
  });

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
    assert.equal(new Set(records.map(({ merchantKey }) => merchantKey)).size, records.length);
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

  it('tell nothing of what they are made of', () => {
    const text = JSON.stringify(named());
    for (const part of ['agent', 'cs_1', 'key-1', 'shop']) assert.ok(!text.includes(part), part);
  });
});
