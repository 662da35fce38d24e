import { createChainCache } from '../../../src/mandates/ap2/chain/cache.ts';
import { createChainVerifier } from '../../../src/mandates/ap2/chain/verify-chain.ts';
import type { Ap2Profile } from '../../../src/mandates/ap2/model/profile.ts';
import type { MandateFamily, Reason } from '../../../src/mandates/ap2/model/reasons.ts';
import type { TrustedIssuers } from '../../../src/mandates/ap2/trust/trust.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { NOW, profileWith } from '../../support/ap2/purchase.ts';
import { trustIn } from '../../support/ap2/trust.ts';
import { lateRefusalOf } from './refusal.ts';

/** One mint and what trusts it. */
export const mint = createMint();
export const trust = trustIn(mint.parties);

/** What a presentation is checked with; left out: right. */
export interface Circumstances {
  readonly family?: MandateFamily;
  readonly now?: number;
  readonly profile?: Ap2Profile;
  readonly trust?: TrustedIssuers;
}

export function verifyChain(presentation: string, circumstances: Circumstances = {}) {
  const { family = 'checkout', now = NOW, profile = profileWith() } = circumstances;
  const parts = { profile, trust: circumstances.trust ?? trust, cache: createChainCache() };
  return createChainVerifier(parts)(presentation, family, now);
}

/** The reason that a presentation is refused for, or `none`. */
export function refusal(presentation: string, circumstances?: Circumstances): Promise<Reason | 'none'> {
  return lateRefusalOf(() => verifyChain(presentation, circumstances));
}
