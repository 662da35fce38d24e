/** The body of a 402 that demands a mandate, for specs of its readers. */

import type { JsonObject } from '../../../src/json/types.ts';
import type { Mint } from './mint.ts';
import { hashed } from './oracle.ts';
import { AUDIENCE } from './purchase.ts';
import type { Wishes } from './wishes.ts';

/**
 * The body of a 402 that demands a mandate, as ap2 7.4 describes it; changes go into the entry for
 * AP2.
 */
export function challengeBody(mint: Mint, wishes: Wishes = {}, changes: JsonObject = {}): JsonObject {
  const { jwt, jti } = mint.checkout(wishes);
  const entry = {
    ...{ method: 'ap2', version: '0.2.0', profile: 'agent-commerce/ap2/checkout/v1', audience: AUDIENCE },
    ...{ nonce: jti, checkoutJwt: jwt, checkoutHash: hashed(jwt), algorithms: ['ES256'], maxEnvelopeBytes: 12_288 },
    ...{ paymentMandate: 'optional', bindPaymentNonce: false, ...changes },
  };
  return { status: 'payment_required', authorization: { required: [entry] } };
}
