/** The verifier of mandates as specs call it. */

import type { ChainCache } from '../../../src/mandates/ap2/chain.ts';
import { createIssuedCheckouts, type IssuedCheckouts } from '../../../src/mandates/ap2/checkout.ts';
import type { TrustedIssuers } from '../../../src/mandates/ap2/issuers.ts';
import type { Ap2Profile, Purchase } from '../../../src/mandates/ap2/purchase.ts';
import type { MandateVerdict } from '../../../src/mandates/ap2/reasons.ts';
import { createMandateVerifier } from '../../../src/mandates/ap2/verify.ts';
import { publishedJwk } from './keys.ts';
import type { Mint } from './mint.ts';
import { NOW, profileWith, purchaseWith } from './purchase.ts';
import { trustIn } from './trust.ts';

/** What a presentation is checked with; left out: the purchase that the mint makes mandates for. */
export interface Against {
  readonly purchase?: Purchase;
  readonly now?: number;
}

export interface VerifierChoices {
  readonly profile?: Ap2Profile;
  readonly minted?: IssuedCheckouts;
  readonly cache?: ChainCache;
  /** The trusted parties, instead of those of the mint. */
  readonly trust?: TrustedIssuers;
}

/**
 * The real verifier, which trusts the parties of a mint. Takes the value of the header; undefined:
 * there is none.
 */
export function verifierFor(
  { parties }: Mint,
  { profile = profileWith(), minted = createIssuedCheckouts(), cache, trust = trustIn(parties) }: VerifierChoices = {},
): (header: string | undefined, against?: Against) => Promise<MandateVerdict> {
  const checkoutKeys = [publishedJwk(parties.checkout)];
  const parts = { profile, trust, checkoutKeys, minted, ...(cache === undefined ? {} : { cache }) };
  const verifier = createMandateVerifier(parts);
  return (value, { purchase = purchaseWith(), now = NOW } = {}) =>
    verifier(value === undefined ? { kind: 'none' } : { kind: 'text', value }, purchase, now);
}
