import { misbehave } from './misbehave.ts';

/**
 * A settlement without an answer counts as refused. A witness is needed for the 402, so the rail
 * has to lie about the evidence.
 */
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
