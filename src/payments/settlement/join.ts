import { REAL_TIME, type Time } from '../../time/time.ts';
import type { PaymentLedger, PaymentRecord } from '../ledger/ledger.ts';
import { isFinal } from '../ledger/transitions.ts';
import { CLOCK_GRAIN_MS } from './existing-payment.ts';
import type { Settler } from './settle.ts';
import type { SettlementRequest, SettlementResult } from './settlement-request.ts';

/** How long a call waits for another one with the same proof, milliseconds (contract 4.3). */
export const JOIN_MS = 3_000;
/**
 * Copies of one authorization that this process works on at a time. Each of them holds a place
 * among all calls of the process, so without a bound one proof would keep other buyers out.
 */
export const MOST_COPIES = 8;
/**
 * Between two looks at the running call's record, milliseconds: quick at first, because most calls
 * are.
 */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 200;
const PAUSE_GROWTH = 1.5;

/**
 * A settler whose copies of one proof wait for the first one instead of being turned away: they
 * then have its answer, or hear that it failed. All copies of a process share one look at the
 * record, and what comes beyond `MOST_COPIES` hears at once that the call is in flight, without a
 * question to the store.
 */
export function joining(settler: Settler, ledger: Pick<PaymentLedger, 'read'>, time: Time = REAL_TIME): Settler {
  const looks = new Map<string, Promise<void>>();
  const look = (payId: string, after: number): Promise<void> => {
    const shared = looks.get(payId);
    if (shared !== undefined) return shared;
    const mine = untilIdle(ledger, payId, after, time).finally(() => looks.delete(payId));
    looks.set(payId, mine);
    return mine;
  };
  const copies = new Map<string, number>();
  const taken = async (order: SettlementRequest): Promise<SettlementResult> => {
    const ends = time.now() + JOIN_MS;
    const { left: leaving } = order;
    const gone = new Promise<void>((resolve) => leaving?.addEventListener('abort', () => resolve(), { once: true }));
    for (let takes = 0; ; takes += 1) {
      const sale = await settler.settle(order, takes > 0);
      const left = ends - time.now();
      if (sale.kind !== 'in_flight' || sale.alone === true || left <= 0) return sale;
      // Who works on it may have died: then nobody gives the lease up, and it is this call's turn
      // at its end.
      const lease = sale.leaseLeftMs === undefined ? left : sale.leaseLeftMs + CLOCK_GRAIN_MS;
      await Promise.race([look(order.terms.payId, takes), time.sleep(Math.min(left, lease)), gone]);
    }
  };
  return {
    async settle(order) {
      const { payId } = order.terms;
      const running = copies.get(payId) ?? 0;
      if (running >= MOST_COPIES) return { kind: 'in_flight', alone: true };
      copies.set(payId, running + 1);
      try {
        return await taken(order);
      } finally {
        const left = (copies.get(payId) ?? 1) - 1;
        if (left === 0) copies.delete(payId);
        else copies.set(payId, left);
      }
    },
  };
}

/**
 * Resolves when nobody works on the record any more, and at the latest when no joined call still
 * waits. Never rejects. `after` so many takes in vain it starts slower: a record that only its key
 * opens is idle, and yet no caller's to take.
 */
async function untilIdle(ledger: Pick<PaymentLedger, 'read'>, payId: string, after: number, time: Time): Promise<void> {
  const ends = time.now() + JOIN_MS;
  for (let looks = after; time.now() < ends; looks += 1) {
    const pause = Math.min(FIRST_PAUSE_MS * PAUSE_GROWTH ** looks, LONGEST_PAUSE_MS);
    await time.sleep(pause);
    // A store that is silent says nothing; the next take will have its error.
    const record = await ledger.read(payId).catch(() => undefined);
    if (record === undefined || isIdle(record)) return;
  }
}

function isIdle(record: PaymentRecord): boolean {
  return isFinal(record.state) || record.leaseUntil === 0;
}
