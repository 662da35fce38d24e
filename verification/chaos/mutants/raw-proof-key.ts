/** Mutant: the replay key is made of the bytes of the proof. */

import { createHash } from 'node:crypto';
import { misbehave } from './misbehave.ts';

await misbehave({
  rail: (rail) => ({
    ...rail,
    examine(candidate) {
      const payId = createHash('sha256').update(JSON.stringify(candidate.decoded.payload)).digest('hex');
      const examination = rail.examine(candidate);
      return {
        ...examination,
        payId,
        async checkSignature() {
          const verdict = await examination.checkSignature();
          return verdict.kind === 'genuine' ? { ...verdict, proof: { ...verdict.proof, payId } } : verdict;
        },
      };
    },
  }),
});
