/** Opens AP2: trusted issuers, the challenge, the verifier and the signed receipts. */

import { createIssuedCheckouts } from '../mandates/ap2/checkout/checkout-mint.ts';
import { createTrustedIssuers } from '../mandates/ap2/trust/issuers.ts';
import { createKeyFetcher } from '../mandates/ap2/trust/key-fetch.ts';
import { type Ap2Config, checkoutKeysOf } from '../mandates/ap2/trust/settings.ts';
import { createChallenger } from '../mandates/ap2/verify/challenge.ts';
import { createReceiptSigner } from '../mandates/ap2/verify/receipt.ts';
import { createMandateVerifier } from '../mandates/ap2/verify/verify.ts';
import type { MandateRegister } from '../mandates/register/register.ts';
import type { OpenMandates } from './open-mandates.ts';

/** The currency of a free resource where the profile has no other one (ISO 4217: no currency). */
const NO_CURRENCY = 'XXX';

export function openAp2(ap2: Ap2Config, register: MandateRegister): OpenMandates {
  const { profile, issuers } = ap2;
  // The merchant's own currency comes before those that the operator added.
  const freeCurrency = [...profile.exponents.keys()].find((currency) => currency !== NO_CURRENCY) ?? NO_CURRENCY;
  const { own, trusted } = checkoutKeysOf(ap2.checkout);
  const fetcher = createKeyFetcher();
  const trust = createTrustedIssuers(issuers, { fetcher });
  const minted = createIssuedCheckouts();
  const verifier = createMandateVerifier({ profile, trust, checkoutKeys: trusted, minted });
  const challenger = createChallenger({ profile, key: own, minted, issuers: issuers.map(({ id }) => id) });
  const receipts = createReceiptSigner({ issuer: profile.issuer, key: own });
  return {
    service: {
      freeCurrency,
      challenge: (purchase) => challenger.challenge(purchase, Date.now()),
      verify: (carried, purchase) => verifier.verify(carried, purchase, Date.now() / 1_000),
      accepted: (reference, { id, ...paid }) => receipts.accepted(reference, { orderId: id, ...paid }, Date.now()),
      rejected: (reference, reason) => receipts.rejected(reference, reason, Date.now()),
      register,
    },
    trust,
    async close() {
      trust.close();
      await fetcher.close();
    },
  };
}
