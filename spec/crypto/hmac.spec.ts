import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { hmacPads, hmacSha256 } from '../../src/crypto/hmac.ts';

const bytes = (maxLength: number) => fc.uint8Array({ maxLength });

describe('an HMAC under a prepared key', () => {
  it('is that of Node, for keys and messages of every length, in one part or several', () =>
    fc.assert(
      fc.property(bytes(64), fc.array(bytes(200), { maxLength: 3 }), (key, parts) => {
        const expected = createHmac('sha256', key);
        for (const part of parts) expected.update(part);
        assert.deepEqual(hmacSha256(hmacPads(key), ...parts), expected.digest());
      }),
    ));

  it('is not made under a key of more than one block, which HMAC would hash first', () => {
    assert.throws(() => hmacPads(new Uint8Array(65)), RangeError);
  });
});
