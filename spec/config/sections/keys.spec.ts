import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { publicJwk, readSigningKey } from '../../../src/crypto/signing-key.ts';
import { type Changes, load } from '../document/document.ts';
import { refuses } from '../refusals.ts';
import { asking, CHECKOUT_PEM, pem } from './ap2.ts';

const KEY = pem();

/** A public key as the gateway's key set had it. */
function published(text: string) {
  const reading = readSigningKey(text);
  assert.ok(reading.ok);
  return reading.key.publicJwk;
}

describe('signing', () => {
  it('is off unless it is there, and signs no offers unless told', () => {
    assert.equal(load({}).signing, undefined);
    assert.deepEqual(load({ signing: { key: KEY } }).signing, { key: KEY, alsoPublish: [], offers: false });
    assert.equal(load({ signing: { key: KEY, offers: true } }).signing?.offers, true);
  });

  it('takes the keys that signed before as the key set had them', () => {
    const old = published(pem());
    assert.deepEqual(load({ signing: { key: KEY, alsoPublish: [old] } }).signing?.alsoPublish, [old]);
  });

  it('has a key that is masked, line by line', () => {
    const secrets = load({ signing: { key: KEY } }).secrets;
    for (const line of KEY.trim().split('\n').slice(1, -1)) assert.ok(secrets.includes(line));
  });

  const OLD = 'signing.alsoPublish[0]';
  const old = (key: object): Changes => ({ signing: { key: KEY, alsoPublish: [key] } });
  refuses([
    ['refuses a section without a key', { signing: {} }, 'signing.key', /is missing/],
    ['refuses a key that is none', 'signing.key', 'hello', /PKCS#8 PEM/],
    [
      'refuses the key of the agent card',
      { signing: { key: KEY }, 'protocols.a2a.signingKey': KEY },
      'signing.key',
      /must not be the key of protocols\.a2a\.signingKey/,
    ],
    [
      'refuses the key of checkouts',
      asking({ signing: { key: CHECKOUT_PEM } }),
      'authorization.ap2.checkout.signingKey',
      /must not be the key of signing\.key/,
    ],
    ['refuses its own key among the old ones', old(published(KEY)), OLD, /a key is for one use/],
    [
      'refuses an old key under another name',
      old({ ...published(pem()), kid: 'last-year' }),
      `${OLD}.kid`,
      /thumbprint/,
    ],
    ['refuses an old key that is none', old({ kty: 'EC' }), OLD, /must/],
    ['refuses the private half of an old key', old({ ...published(pem()), d: 'x' }), OLD, /must/],
  ]);

  it('names a key by its thumbprint', () => assert.equal(published(KEY).kid, publicJwk(published(KEY)).kid));
});
