import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../../src/json/types.ts';
import type { Reason } from '../../../src/mandates/ap2/model/reasons.ts';
import type { Hand } from '../../support/ap2/hands.ts';
import type { Wishes } from '../../support/ap2/wishes.ts';
import { type Circumstances, mint, refusal } from './chains.ts';

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

/** A hand that changes claims as nobody else does, and drops all disclosures. */
export function withoutDisclosures(claims: (claims: JsonObject) => JsonObject): Hand {
  return { draft: (draft) => ({ ...draft, claims: claims(draft.claims), disclosures: [] }) };
}
