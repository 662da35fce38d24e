/** Mutant: `authorizationState` alone counts, so a spent nonce is a payment, whatever spent it. */

import { misbehave } from './misbehave.ts';

const NO_TRANSACTION = `0x${'00'.repeat(32)}`;

await misbehave({
  rail: (rail) => ({
    ...rail,
    async reconcile(proof, offer, history) {
      const reading = await rail.reconcile(proof, offer, history);
      if (reading.kind !== 'refused' || reading.evidence !== 'elsewhere') return reading;
      return { kind: 'settled', evidence: 'logs', transaction: reading.transaction ?? NO_TRANSACTION };
    },
  }),
});
