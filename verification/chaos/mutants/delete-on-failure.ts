/** Mutant: after any failure the record is deleted, so that the buyer can try again. */

import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { type Engine, misbehave } from './misbehave.ts';

function forgetful(ledger: PaymentLedger, { redis, keys }: Engine): PaymentLedger {
  const forget = async (payId: string): Promise<void> => {
    await redis.multi().del(keys.payment(payId)).zrem(keys.open, payId).exec();
  };
  return {
    ...ledger,
    async advance(command) {
      const written = await ledger.advance(command);
      if (written.kind === 'done' && command.to === 'undelivered') await forget(command.payId);
      return written;
    },
    async note(command) {
      const written = await ledger.note(command);
      if (written.kind === 'done' && command.leaseMs === 0) await forget(command.payId);
      return written;
    },
  };
}

await misbehave({ ledger: forgetful });
