/**
 * Mutant: a settlement without an answer counts as refused. A 402 needs evidence, so the rail gives
 * false evidence.
 */

import { misbehave } from './misbehave.ts';

await misbehave({
  rail: (rail) => ({
    ...rail,
    async settle(proof, offer, writeAhead, history) {
      const settlement = await rail.settle(proof, offer, writeAhead, history);
      if (settlement.kind !== 'uncertain') return settlement;
      return { kind: 'refused', reason: 'settlement_timeout', evidence: 'unsent' };
    },
  }),
});
