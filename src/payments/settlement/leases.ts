import { REAL_TIME, type Time } from '../../time/time.ts';
import { fencingToken } from '../ledger/fencing-token.ts';
import type { PaymentLedger, PaymentRecord } from '../ledger/ledger.ts';

/**
 * How long a record stays with an attempt that no longer says that it lives, milliseconds. It is what a buyer waits after a `kill -9`, so it
 * is shorter than a copy waits for its original (join.ts); and longer than a process may stand still (2 s) after its last renewal. A store
 * that is away for longer costs the attempt its record: then another one goes on, and the writes of this one are fenced off.
 */
export const LEASE_MS = 2_900;
/** Between two renewals, milliseconds. An attempt that is younger than this needs none. */
export const RENEW_EVERY_MS = 300;

/** The hold of one running attempt on its record. */
export interface Lease {
  /** No more renewals; the write that ends the attempt gives the lease itself up. May be called again. */
  drop(): void;
}

/** Keeps the leases of this process's running attempts alive. A process that dies, hangs or is paused loses them by itself. */
export interface Leases {
  /** `atMostMs`: longer than all deadlines of the attempt together, so that a bug cannot hold a record for ever. */
  hold(record: PaymentRecord, atMostMs: number): Lease;
  /** Gives up everything still held: a process that ends must not make others wait. Never rejects. */
  releaseAll(): Promise<void>;
}

interface Held {
  /** One renewal is on its way: a slow store is not asked again meanwhile, and its silence does not hold up the others. */
  renewing: boolean;
  readonly record: PaymentRecord;
  readonly since: number;
  readonly until: number;
}

export function createLeases(
  ledger: Pick<PaymentLedger, 'renew' | 'note'>,
  time: Time = REAL_TIME,
  renewEveryMs: number = RENEW_EVERY_MS,
): Leases {
  const held = new Set<Held>();
  let running = false;

  const renewals = async (): Promise<void> => {
    while (held.size > 0) {
      await time.sleep(renewEveryMs);
      const now = time.now();
      for (const one of held) void renewed(one, now);
    }
    running = false;
  };
  const renewed = async (one: Held, now: number): Promise<void> => {
    if (now >= one.until) held.delete(one);
    else if (!one.renewing && now - one.since >= renewEveryMs) {
      one.renewing = true;
      // A store that is silent may be back before the lease ends: only its "no" ends the renewals.
      const still = await ledger.renew(one.record, LEASE_MS).catch(() => true);
      one.renewing = false;
      if (!still) held.delete(one);
    }
  };

  return {
    hold(record, atMostMs) {
      const since = time.now();
      const one = { record, since, until: since + atMostMs, renewing: false };
      held.add(one);
      if (!running) {
        running = true;
        void renewals();
      }
      return { drop: () => void held.delete(one) };
    },
    async releaseAll() {
      const left = [...held];
      held.clear();
      await Promise.allSettled(left.map(({ record }) => ledger.note({ ...fencingToken(record), leaseMs: 0 })));
    },
  };
}
