import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkoutKeysOf } from '../../../src/mandates/ap2/trust/settings.ts';
import { problems } from '../document/document.ts';
import type { Row } from '../refusals.ts';
import { asking, CHECKOUT_PEM, issuers, jwk, keyed, PROVIDER, pem, publicHalf, refuses } from './ap2.ts';

const A = 'authorization.ap2';
const R = 'resources.report';
const CARD = pem();
const CARD_KID = checkoutKeysOf({ signingKey: CARD, kid: undefined, alsoTrust: [] }).own.publicJwk.kid;

const ROWS: readonly Row[] = [
  ['to be on without a key', `${A}.checkout`, undefined, /^is missing: the key that signs checkouts/],
  ['to ask without an issuer', `${A}.issuers`, undefined, /^is missing: resources\.report requires ap2/],
  ['an unknown key', `${A}.maxAge`, 1, /is not a known key/],
  ['a skew of more than 300 s', `${A}.clockSkewSeconds`, 301, /0 to 300/],
  ['an unknown algorithm', { [`${A}.algorithms`]: ['RS256'] }, `${A}.algorithms[0]`, /ES256, EdDSA, ES384 or ES256K/],
  ['an envelope that no header holds', `${A}.maxEnvelopeBytes`, 24_576, /1024 to 20480/],
  [
    'other digits for the token',
    { [`${A}.currencies`]: { USDC: 2 } },
    `${A}.currencies.USDC`,
    /must be 6, or left out/,
  ],
  [
    'an unknown policy',
    { [`${A}.policy`]: { paymentMandate: 'maybe' } },
    `${A}.policy.paymentMandate`,
    /optional, or required/,
  ],
  ['a checkout key that is none', `${A}.checkout.signingKey`, 'hello', /PKCS#8 PEM/],
  [
    'the key of the agent card for checkouts',
    { 'protocols.a2a.signingKey': CHECKOUT_PEM },
    `${A}.checkout.signingKey`,
    /must not be the key of protocols\.a2a\.signingKey/,
  ],
  [
    'the checkout key as an issuer',
    issuers({ ...PROVIDER, keys: [{ ...publicHalf(CHECKOUT_PEM), kid: 'k' }] }),
    `${A}.issuers[0].keys`,
    /must not be the key of authorization\.ap2\.checkout\.signingKey/,
  ],
  [
    'an issuer’s key for checkouts',
    { [`${A}.checkout.alsoTrust`]: PROVIDER.keys },
    `${A}.issuers[0].keys`,
    /must not be the key of authorization\.ap2\.checkout\.alsoTrust\[0\]/,
  ],
  [
    'a private key to trust besides',
    { [`${A}.checkout.alsoTrust`]: [{ ...jwk('k'), d: 'AAAA' }] },
    `${A}.checkout.alsoTrust[0]`,
    /private members/,
  ],
  [
    'a checkout key of another curve',
    { [`${A}.checkout.alsoTrust`]: [jwk('k', 'P-384')] },
    `${A}.checkout.alsoTrust[0]`,
    /curve P-256/,
  ],
  [
    'two checkout keys of one name',
    { [`${A}.checkout`]: { signingKey: CHECKOUT_PEM, kid: 'k', alsoTrust: [jwk('k')] } },
    `${A}.checkout.alsoTrust[0]`,
    /must have a kid that no other key/,
  ],
  [
    'the name of the card’s key for the checkout key',
    { 'protocols.a2a.signingKey': CARD, [`${A}.checkout.kid`]: CARD_KID },
    `${A}.checkout.kid`,
    /must not be the name of the key of the agent card/,
  ],
  [
    'the name of the card’s key for checkouts',
    {
      'protocols.a2a.signingKey': CARD,
      [`${A}.checkout.alsoTrust`]: [jwk(CARD_KID)],
    },
    `${A}.checkout.alsoTrust[0]`,
    /must have a kid that no other key/,
  ],
  ['more digits than the token has', `${R}.pricing.amount`, '0.0100000', /at most 6 digits behind the point with ap2/],
  ['a price that JSON cannot hold', `${R}.pricing.amount`, '9007199254.740993', /less than 2\^53/],
];

describe('authorization.ap2 refuses', () => {
  refuses(ROWS);

  it('problems of other sections are named in the same run', () => {
    const changes = { ...keyed({ d: 'x' }), [`${A}.checkout.signingKey`]: 'x', 'server.port': -1 };
    assert.deepEqual(
      problems(asking(changes))
        .map(({ path }) => path)
        .toSorted(),
      [`${A}.checkout.signingKey`, `${A}.issuers[0].keys[0]`, 'server.port'],
    );
  });
});
