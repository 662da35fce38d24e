/** Mutant: every attempt of a write has a step token of its own. */

import { randomUUID } from 'node:crypto';
import { misbehave } from './misbehave.ts';

await misbehave({
  ledger: (ledger) => ({
    ...ledger,
    advance: (command) => ledger.advance({ ...command, step: randomUUID() }),
    note: (command) => ledger.note({ ...command, step: randomUUID() }),
  }),
});
