import { setTimeout as delay } from 'node:timers/promises';
import type { Settlement } from '../../rail.ts';
import type { Chain, EvidenceQuery } from './chain.ts';
import { decided } from './evidence-query.ts';

/** Between two looks at the chain, milliseconds: quick at first, then at the pace of blocks. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Watches the chain until it decides, the known transaction has failed in a block, or the wait is over. `settled` and `refused` are
 * what the chain shows, so both may be believed whoever said what before; anything else stays `uncertain` with `cause` and the hash
 * that is known. A failed transaction does not make the authorization worthless: anybody may still send that.
 */
export async function confirmPayment(
  chain: Chain,
  query: EvidenceQuery,
  waitMs: number,
  cause: string,
): Promise<Settlement> {
  const ends = performance.now() + waitMs;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    const evidence = await chain.readEvidence(query);
    const shown = decided(evidence);
    if (shown !== undefined) return shown;
    const { knownTransaction } = query;
    const known = knownTransaction === undefined ? {} : { transaction: knownTransaction };
    if (evidence.kind === 'open' && evidence.failed === true)
      return { kind: 'uncertain', cause: 'the transaction failed in its block', failed: true, ...known };
    const left = ends - performance.now();
    if (left <= 0) return { kind: 'uncertain', cause, ...known };
    await delay(Math.min(pause, left));
  }
}
