/** What specs of the whole verifier share: rows of presentations with their verdicts. */

import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { JsonObject } from '../../../src/json/types.ts';
import type { MandateFamily, Reason } from '../../../src/mandates/ap2/reasons.ts';
import type { Against, verifierFor } from '../../support/ap2/verifier.ts';
import type { Wishes } from '../../support/ap2/wishes.ts';

/** A presentation, its verdict, and the purchase or time it is checked with where not the usual. */
export type Row = readonly [what: string, header: () => string, result: Reason | 'accepted', against?: Against];

type Verdict = ReturnType<ReturnType<typeof verifierFor>>;

/** One test a row: through the whole verifier, so that it also shows which check comes first. */
export function rows(verify: ReturnType<typeof verifierFor>, family: MandateFamily, table: readonly Row[]): void {
  for (const [what, header, result, against] of table)
    it(`${result}: ${what}`, async () =>
      assert.deepEqual(await resultOf(verify(header(), against)), result === 'accepted' ? [result] : [result, family]));
}

/** `accepted`, or the reason and the mandate that it is about. */
export async function resultOf(verdict: Verdict): Promise<readonly (string | undefined)[]> {
  const given = await verdict;
  return given.kind === 'accepted' ? ['accepted'] : [given.reason, given.mandate];
}

/** A checkout with other claims, signed by the merchant all the same. */
export function withCheckoutClaims(change: (claims: JsonObject) => JsonObject): NonNullable<Wishes['checkout']> {
  return { change: ({ header, claims }) => ({ header, claims: change(claims) }) };
}
