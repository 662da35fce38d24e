/** Mutant: the clock of the process decides whether a lease is over. */

import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { type Engine, misbehave } from './misbehave.ts';

function byOwnClock(ledger: PaymentLedger, { redis, keys }: Engine): PaymentLedger {
  return {
    ...ledger,
    async reserve(command) {
      const reservation = await ledger.reserve(command);
      if (reservation.kind !== 'in_flight' || reservation.record.leaseUntil > Date.now()) return reservation;
      await redis.hset(keys.payment(command.terms.payId), 'leaseUntil', '0');
      return ledger.reserve(command);
    },
  };
}

await misbehave({ ledger: byOwnClock });
