/**
 * Copies of one proof that come to one process: all but the first wait for its answer instead of
 * being refused. Wraps the settler; nothing here moves money.
 */

import { Counts } from '../../counts.ts';
import { REAL_TIME, type Time } from '../../time/time.ts';
import type { PaymentLedger, PaymentRecord } from '../ledger/ledger.ts';
import { isFinal } from '../ledger/transitions.ts';
import { CLOCK_GRAIN_MS } from './existing-payment.ts';
import type { Settler } from './settle.ts';
import type { SettlementRequest, SettlementResult } from './settlement-request.ts';

/** How long a call waits for another one with the same proof, milliseconds (contract 4.3). */
export const JOIN_MS = 3_000;
/**
 * Copies of one authorization that this process works on at a time. Each copy holds a slot of the
 * process, so without a bound one proof would keep other buyers out.
 */
export const MOST_COPIES = 8;
/** Between two looks at the running call's record, milliseconds: short at first, as calls are. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 200;
const PAUSE_GROWTH = 1.5;

/**
 * A settler whose copies of one proof wait for the first one: they then get its answer, or the
 * failure of it. All copies of a process share one look at the record; copies beyond `MOST_COPIES`
 * are answered "in flight" at once, without a question to the store.
 */
export function joining(settler: Settler, ledger: Pick<PaymentLedger, 'read'>, time: Time = REAL_TIME): Settler {
  const looks = new Map<string, Promise<void>>();
  const untilShared = (payId: string, after: number): Promise<void> => {
    const shared = looks.get(payId);
    if (shared !== undefined) return shared;
    const own = untilIdle(ledger, payId, after, time).finally(() => looks.delete(payId));
    looks.set(payId, own);
    return own;
  };
  const copies = new Counts();
  const settleOrWait = async (request: SettlementRequest): Promise<SettlementResult> => {
    const ends = time.now() + JOIN_MS;
    const { left: leaving } = request;
    const gone = new Promise<void>((resolve) => leaving?.addEventListener('abort', () => resolve(), { once: true }));
    for (let attempt = 0; ; attempt += 1) {
      const result = await settler.settle(request, attempt > 0);
      const left = ends - time.now();
      if (result.kind !== 'in_flight' || result.alone === true || left <= 0) return result;
      // The attempt that works on it may have died: then this call goes on when the lease ends.
      const lease = result.leaseLeftMs === undefined ? left : result.leaseLeftMs + CLOCK_GRAIN_MS;
      await Promise.race([untilShared(request.terms.payId, attempt), time.sleep(Math.min(left, lease)), gone]);
    }
  };
  return {
    async settle(request) {
      const { payId } = request.terms;
      if (copies.of(payId) >= MOST_COPIES) return { kind: 'in_flight', alone: true };
      copies.add([payId], 1);
      try {
        return await settleOrWait(request);
      } finally {
        copies.add([payId], -1);
      }
    },
  };
}

/**
 * Resolves when no attempt works on the record any more, at the latest when no joined call waits.
 * Never rejects. It starts slower `after` so many attempts in vain: a record that only its key
 * opens is idle, and still not granted to this call.
 */
async function untilIdle(ledger: Pick<PaymentLedger, 'read'>, payId: string, after: number, time: Time): Promise<void> {
  const ends = time.now() + JOIN_MS;
  for (let looks = after; time.now() < ends; looks += 1) {
    const pause = Math.min(FIRST_PAUSE_MS * PAUSE_GROWTH ** looks, LONGEST_PAUSE_MS);
    await time.sleep(pause);
    // The next attempt gets the error of a silent store.
    const record = await ledger.read(payId).catch(() => undefined);
    if (record === undefined || isIdle(record)) return;
  }
}

function isIdle(record: PaymentRecord): boolean {
  return isFinal(record.state) || record.leaseUntil === 0;
}
