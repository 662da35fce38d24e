/** Opens AP2: trusted issuers, the challenge, the verifier and the signed receipts. */

import { createChallenger, createReceiptSigner } from '../mandates/ap2/challenge.ts';
import { checkoutKeysOf, createIssuedCheckouts, type IssuedCheckouts } from '../mandates/ap2/checkout.ts';
import { createTrustedIssuers, type IssuerTrust } from '../mandates/ap2/issuers.ts';
import type { Ap2Config } from '../mandates/ap2/purchase.ts';
import { createKeyFetcher, type KeyFetcher } from '../mandates/ap2/remote-keys.ts';
import { createMandateVerifier, type MandateService } from '../mandates/ap2/verify.ts';
import type { MandateRegister } from '../mandates/register.ts';

/** The currency of a free resource where the profile has no other one (ISO 4217: no currency). */
const NO_CURRENCY = 'XXX';

/** The mandates of one configuration. */
export interface OpenMandates {
  readonly service: MandateService;
  /** The trusted issuers, which readiness checks. */
  readonly trust: IssuerTrust;
  /** Stops fetching keys, except for issuers that `next` shares. */
  close(next?: OpenMandates): void;
}

/** Makes an opener whose configurations share connections to issuers and signed checkouts. */
export function createAp2Opener(register: MandateRegister) {
  const fetcher = createKeyFetcher();
  const minted = createIssuedCheckouts();
  return {
    /** `before`: of the present configuration. Issuers that stay keep their fetched keys. */
    open: (ap2: Ap2Config, before?: OpenMandates) => openAp2(ap2, { register, fetcher, minted }, before),
    /** Fetches no more keys. */
    close: () => fetcher.close(),
  };
}

interface Shared {
  readonly register: MandateRegister;
  readonly fetcher: KeyFetcher;
  readonly minted: IssuedCheckouts;
}

function openAp2(ap2: Ap2Config, { register, fetcher, minted }: Shared, before?: OpenMandates): OpenMandates {
  const { profile, issuers } = ap2;
  // The merchant's own currency comes before those that the operator added.
  const freeCurrency = [...profile.exponents.keys()].find((currency) => currency !== NO_CURRENCY) ?? NO_CURRENCY;
  const { own, trusted } = checkoutKeysOf(ap2.checkout);
  const trust = createTrustedIssuers(issuers, {
    fetcher,
    ...(before === undefined ? {} : { fetched: before.trust.remotes }),
  });
  const verify = createMandateVerifier({ profile, trust, checkoutKeys: trusted, minted });
  const challenge = createChallenger({ profile, key: own, minted, issuers: issuers.map(({ id }) => id) });
  const receipts = createReceiptSigner({ issuer: profile.issuer, key: own });
  return {
    service: {
      freeCurrency,
      challenge: (purchase, others = []) => challenge(purchase, others, Date.now()),
      verify: (carried, purchase) => verify(carried, purchase, Date.now() / 1_000),
      accepted: (reference, order) => receipts.accepted(reference, order, Date.now()),
      rejected: (reference, reason) => receipts.rejected(reference, reason, Date.now()),
      register,
    },
    trust,
    close: (next) => trust.close(next?.trust),
  };
}
