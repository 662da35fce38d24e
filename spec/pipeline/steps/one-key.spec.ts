import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../src/errors.ts';
import { oneKey } from '../../../src/pipeline/collecting.ts';

const refuses = (reason: string) => (thrown: unknown) => {
  assert.ok(thrown instanceof GatewayError);
  assert.deepEqual([thrown.code, thrown.details?.reason], ['INPUT_INVALID', reason]);
  assert.ok(!thrown.message.includes('secret'), 'a key is never quoted');
  return true;
};

describe('the one key of a paid call', () => {
  it('may be absent, the header, the identifier of the proof, or both when they are equal', () => {
    assert.equal(oneKey(undefined, undefined), undefined);
    assert.equal(oneKey('k', undefined), 'k');
    assert.equal(oneKey(undefined, 'identifier-of-16'), 'identifier-of-16');
    assert.equal(oneKey('identifier-of-16', 'identifier-of-16'), 'identifier-of-16');
  });

  it('two that differ are refused, also when only their case does', () => {
    for (const header of ['secret-of-16-chars', 'IDENTIFIER-of-16'])
      assert.throws(() => oneKey(header, 'identifier-of-16'), refuses('idempotency_keys_differ'));
  });

  it('is 1 to 255 printable ASCII characters', () => {
    for (const key of ['x', ' ', '~', 'a b', 'x'.repeat(255)]) assert.equal(oneKey(key, undefined), key);
    for (const key of ['', 'x'.repeat(256), 'secret\n', 'secret\t', 'secret\x7f', 'secr\u00e9t', 'secret\u{1f4b6}'])
      assert.throws(() => oneKey(key, undefined), refuses('idempotency_key_malformed'), JSON.stringify(key));
  });

  it('that came twice is refused, also beside an identifier', () => {
    for (const identifier of [undefined, 'identifier-of-16'])
      assert.throws(() => oneKey({ kind: 'illegible' }, identifier), refuses('idempotency_key_malformed'));
  });
});
