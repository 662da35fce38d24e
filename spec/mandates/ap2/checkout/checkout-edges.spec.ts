import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json, JsonObject } from '../../../../src/json/types.ts';
import { unitsOf } from '../../../../src/mandates/ap2/model/purchase.ts';
import { changed } from '../../../support/ap2/hands.ts';
import { createMint } from '../../../support/ap2/mint.ts';
import { profileWith, purchaseWith } from '../../../support/ap2/purchase.ts';
import { verifierFor } from '../../../support/ap2/verifier.ts';
import { type Row, rows } from '../table.ts';

const mint = createMint();
const DIGEST = 'a'.repeat(43);
const LAST_SECOND = 253_402_300_799;

/** A mandate for a checkout with other claims, signed by the merchant all the same. */
function claims(changes: { readonly [name: string]: Json | undefined }): () => string {
  return () =>
    mint.autonomous({
      checkout: { change: ({ header, claims }) => ({ header, claims: changed(claims, changes) }) },
    }).header;
}

function commerce(changes: { readonly [name: string]: Json }): () => string {
  return () =>
    mint.autonomous({
      checkout: {
        change: ({ header, claims }) => ({
          header,
          claims: { ...claims, agent_commerce: { ...(claims['agent_commerce'] as JsonObject), ...changes } },
        }),
      },
    }).header;
}

function unsigned(payload: string): () => string {
  const header = Buffer.from('{"alg":"ES256","typ":"JWT","kid":"k"}').toString('base64url');
  const checkoutJwt = `${header}.${Buffer.from(payload).toString('base64url')}.AAAA`;
  return () => mint.autonomous({ checkoutJwt }).header;
}

describe('the edges of a checkout (ap2 7.6, step 11)', () => {
  rows(verifierFor(mint), 'checkout', [
    ['without a status', claims({ status: undefined }), 'accepted'],
    ['with 16 characters of id, which are not the nonce', claims({ jti: 'a'.repeat(16) }), 'nonce_mismatch'],
    ['with 128 characters of id, which are not the nonce', claims({ jti: 'a'.repeat(128) }), 'nonce_mismatch'],
    ['good until the last second of all', claims({ exp: LAST_SECOND }), 'accepted'],
    ['good for a second longer', claims({ exp: LAST_SECOND + 1 }), 'checkout_invalid'],
    ['with a merchant that is nothing', claims({ merchant: null }), 'checkout_invalid'],
    ['with items that are a text', claims({ line_items: 'market_report' }), 'checkout_invalid'],
    ['with a line that is nothing', claims({ line_items: [null] }), 'checkout_invalid'],
    ['with a hash in a list', commerce({ input_hash: [DIGEST] }), 'checkout_invalid'],
    ['with a network in a list', commerce({ network: ['eip155:84532'] }), 'checkout_invalid'],
    ['with a number that is not exact', unsigned('{"iat":9007199254740993}'), 'checkout_invalid'],
    ['of the same form with one that is', unsigned('{"iat":1}'), 'checkout_signature_invalid'],
  ] satisfies readonly Row[]);

  it('a price in a currency that the profile does not know is a bug that is told', () => {
    const profile = { ...profileWith(), exponents: new Map([['USDC', 6]]) };
    const purchase = { ...purchaseWith(), price: { amount: '0.01', currency: 'EUR' } };
    assert.throws(() => unitsOf(purchase, profile), /no minor units in EUR/);
  });
});
