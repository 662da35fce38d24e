import { REAL_TIME, type Time } from '../../time/time.ts';
import {
  fencingToken,
  type PaymentLedger,
  type PaymentRecord,
  type Reservation,
  type Reserve,
} from '../ledger/ledger.ts';
import { mayStandAfter, PATIENT_PAUSES_MS, persist } from './retry-policy.ts';

/**
 * How long a record stays with an attempt that no longer says that it lives, milliseconds. It is
 * what a buyer waits after a `kill -9`, so it is shorter than a copy waits for its original
 * (join.ts); and longer than a process may stand still (2 s) after its last renewal. A store that
 * is away for longer costs the attempt its record: then another one goes on, and the writes of this
 * one are fenced off.
 */
export const LEASE_MS = 2_900;
/** Between two renewals, milliseconds. An attempt that is younger than this needs none. */
export const RENEW_EVERY_MS = 300;

/** The hold of one running attempt on its record. */
export interface Lease {
  /**
   * No more renewals; the write that ends the attempt gives the lease itself up. May be called
   * again.
   */
  drop(): void;
}

/**
 * Keeps the leases of this process's running attempts alive. A process that dies, hangs or is
 * paused loses them by itself.
 */
export interface Leases {
  /**
   * `atMostMs`: longer than all deadlines of the attempt together, so that a bug cannot hold a
   * record for ever.
   */
  hold(record: PaymentRecord, atMostMs: number): Lease;
  /**
   * Gives up everything still held: a process that ends must not make others wait. Never rejects.
   */
  releaseAll(): Promise<void>;
}

interface Held {
  /**
   * One renewal is on its way: a slow store is not asked again meanwhile, and its silence does not
   * hold up the others.
   */
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

/**
 * Reservations that are asked about at the same time: a store that was away for long must not be
 * met by all who came meanwhile.
 */
const ASKED_AT_ONCE = 64;

/** Reservations of calls that go away when the store does not answer. */
export interface Reservations {
  /**
   * Reserves. A store that hung may carry it out when no call waits for it any more; so behind the
   * call that was told "the store is away" it is asked again, under the same owner, and what it
   * then holds is given back: the buyer's next try must not find its own proof taken.
   * @throws whatever the ledger throws
   */
  reserve(command: Reserve): Promise<Reservation>;
}

export function createReservations(
  ledger: Pick<PaymentLedger, 'reserve' | 'discard' | 'note'>,
  time?: Time,
): Reservations {
  let asked = 0;
  const giveBack = async (command: Reserve): Promise<void> => {
    const answer = await persist(() => ledger.reserve(command), time, PATIENT_PAUSES_MS);
    if (answer.kind !== 'granted') return;
    const { record } = answer;
    if (record.state === 'reserved') await ledger.discard(fencingToken(record), []);
    else await ledger.note({ ...fencingToken(record), leaseMs: 0 });
  };
  return {
    async reserve(command) {
      try {
        return await ledger.reserve(command);
      } catch (thrown) {
        if (asked < ASKED_AT_ONCE && mayStandAfter(thrown)) {
          asked += 1;
          // Its lease ends by itself all the same.
          void giveBack(command)
            .catch(() => undefined)
            .finally(() => {
              asked -= 1;
            });
        }
        throw thrown;
      }
    },
  };
}
