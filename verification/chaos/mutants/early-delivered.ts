/** Mutant: a call counts as delivered from its settlement on. */

import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { misbehave } from './misbehave.ts';

function hasty(ledger: PaymentLedger): PaymentLedger {
  return {
    ...ledger,
    async advance(command) {
      const { step, receipt } = command;
      if (command.to === 'delivered') {
        const record = await ledger.read(command.payId);
        return record === undefined ? { kind: 'lost' } : { kind: 'done', record };
      }
      const written = await ledger.advance(command);
      if (written.kind !== 'done' || command.to !== 'settled' || receipt === undefined) return written;
      const delivered = { ...receipt, delivered: true, deliveredAt: receipt.at };
      const { payId, owner, fence } = command;
      const early = { payId, owner, fence, step: `${step}-early`, receipt: delivered, events: [] };
      await ledger.advance({ ...early, to: 'delivered', leaseMs: 0 });
      return written;
    },
  };
}

await misbehave({ ledger: hasty });
