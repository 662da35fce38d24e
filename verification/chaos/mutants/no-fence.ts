/** Mutant: every writer passes for the owner. */

import type { Holder, PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { misbehave } from './misbehave.ts';

function unfenced(ledger: PaymentLedger): PaymentLedger {
  const asOwner = async <T extends Holder>(command: T): Promise<T> => {
    const record = await ledger.read(command.payId);
    return record === undefined ? command : { ...command, owner: record.owner, fence: record.fence };
  };
  return {
    ...ledger,
    advance: async (command) => ledger.advance(await asOwner(command)),
    note: async (command) => ledger.note(await asOwner(command)),
    discard: async (command, ...more) => ledger.discard(await asOwner(command), ...more),
  };
}

await misbehave({ ledger: unfenced });
