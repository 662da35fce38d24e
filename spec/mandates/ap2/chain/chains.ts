/** What the specs of chains share: one mint, a verifier of its chains, and rows of refused ones. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../../../src/json/types.ts';
import { createChainCache, createChainVerifier } from '../../../../src/mandates/ap2/chain.ts';
import type { TrustedIssuers } from '../../../../src/mandates/ap2/issuers.ts';
import type { Ap2Profile } from '../../../../src/mandates/ap2/purchase.ts';
import type { MandateFamily, Reason } from '../../../../src/mandates/ap2/reasons.ts';
import type { Hand } from '../../../support/ap2/hands.ts';
import { createMint } from '../../../support/ap2/mint.ts';
import { NOW, profileWith } from '../../../support/ap2/purchase.ts';
import { trustIn } from '../../../support/ap2/trust.ts';
import type { Wishes } from '../../../support/ap2/wishes.ts';
import { lateRefusalOf } from '../refusal.ts';

/** One mint and what trusts it. */
export const mint = createMint();
export const trust = trustIn(mint.parties);

/** What a presentation is checked with; left out: right. */
interface Circumstances {
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

/** What is wrong with a chain, why it is refused, and how it is made. */
export type Row = readonly [what: string, reason: Reason, wishes: Wishes, circumstances?: Circumstances];

/** One test a row: an autonomous checkout mandate that is right but for the wishes. */
export function refuses(title: string, table: readonly Row[]): void {
  describe(title, () => {
    for (const [what, reason, wishes, circumstances] of table)
      it(`${what}: ${reason}`, async () =>
        assert.equal(await refusal(mint.autonomous(wishes).payload, circumstances), reason));
  });
}

/** The open mandate, the closed one, or the one between them, forged. */
export const open = (hand: Hand): Wishes => ({ hands: { open: hand } });
export const closed = (hand: Hand): Wishes => ({ hands: { closed: hand } });
export const handedOn = (hand: Hand): Wishes => ({ delegated: true, hands: { subAgent: hand } });

/** A hand that replaces the claims and drops all disclosures. */
export function withoutDisclosures(claims: (claims: JsonObject) => JsonObject): Hand {
  return { draft: (draft) => ({ ...draft, claims: claims(draft.claims), disclosures: [] }) };
}
