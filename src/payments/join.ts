import type { Cashier } from './cashier.ts';
import type { PaymentLedger, PaymentRecord } from './ledger/ledger.ts';
import { isFinal } from './ledger/table.ts';
import type { Sale } from './sale.ts';
import { REAL_TIME, type Time } from './time.ts';

/** How long a call waits for another one with the same proof, milliseconds (CONTRACT 4.3). */
export const JOIN_MS = 3_000;
/** Between two looks at the running call's record, milliseconds: quick at first, because most calls are. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 200;

/**
 * A cashier whose copies of one proof wait for the first one instead of being turned away: they then have its answer, or go on where
 * it failed. All copies of a process share one look at the record.
 */
export function joining(cashier: Cashier, ledger: Pick<PaymentLedger, 'read'>, time: Time = REAL_TIME): Cashier {
  const looks = new Map<string, Promise<void>>();
  const look = (payId: string): Promise<void> => {
    const shared = looks.get(payId);
    if (shared !== undefined) return shared;
    const mine = untilIdle(ledger, payId, time).finally(() => looks.delete(payId));
    looks.set(payId, mine);
    return mine;
  };
  return {
    async take(order): Promise<Sale> {
      const ends = time.now() + JOIN_MS;
      for (let joined = false; ; joined = true) {
        const sale = await cashier.take(order, joined);
        const left = ends - time.now();
        if (sale.kind !== 'in_flight' || left <= 0) return sale;
        await Promise.race([look(order.terms.payId), time.sleep(left)]);
      }
    },
  };
}

/** Resolves when nobody works on the record any more, and at the latest when no joined call still waits. Never rejects. */
async function untilIdle(ledger: Pick<PaymentLedger, 'read'>, payId: string, time: Time): Promise<void> {
  const ends = time.now() + JOIN_MS;
  for (let pause = FIRST_PAUSE_MS; time.now() < ends; pause = Math.min(1.5 * pause, LONGEST_PAUSE_MS)) {
    await time.sleep(pause);
    // A store that is silent says nothing; the next take will have its error.
    const record = await ledger.read(payId).catch(() => undefined);
    if (record === undefined || isIdle(record)) return;
  }
}

function isIdle(record: PaymentRecord): boolean {
  return isFinal(record.state) || record.leaseUntil === 0;
}
