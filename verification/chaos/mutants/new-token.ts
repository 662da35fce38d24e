import { randomUUID } from 'node:crypto';
import { misbehave } from './misbehave.ts';

/** Every attempt of a write is a write of its own. */
await misbehave({
  ledger: (ledger) => ({
    ...ledger,
    advance: (command) => ledger.advance({ ...command, step: randomUUID() }),
    note: (command) => ledger.note({ ...command, step: randomUUID() }),
  }),
});
