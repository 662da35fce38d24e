import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { MandateFamily, Reason } from '../../../src/mandates/ap2/model/reasons.ts';
import type { Against, verifierFor } from '../../support/ap2/verifier.ts';

/**
 * A presentation, what comes of it, and what it is held against where that is not the usual
 * purchase.
 */
export type Row = readonly [what: string, header: () => string, result: Reason | 'accepted', against?: Against];

type Verdict = ReturnType<ReturnType<typeof verifierFor>>;

/** One test a row: through the whole verifier, so that it also shows which check comes first. */
export function rows(verify: ReturnType<typeof verifierFor>, family: MandateFamily, table: readonly Row[]): void {
  for (const [what, header, result, against] of table)
    it(`${result}: ${what}`, async () => {
      const verdict = await verify(header(), against);
      if (verdict.kind === 'accepted') return assert.equal('accepted', result);
      assert.deepEqual([verdict.reason, verdict.mandate], [result, family]);
    });
}

/** `accepted`, or the reason and the mandate that it is about. */
export async function said(verdict: Verdict): Promise<readonly (string | undefined)[]> {
  const told = await verdict;
  return told.kind === 'accepted' ? ['accepted'] : [told.reason, told.mandate];
}
