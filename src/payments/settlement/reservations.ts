/**
 * The right of one attempt to work on a record: how it is reserved, kept alive while the attempt
 * runs, and given back.
 */

import { LinkedList, type Place } from '../../linked-list.ts';
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
 * How long a record stays with an attempt that renews no more, milliseconds. A buyer waits for it
 * after a `kill -9`, so it is shorter than a copy waits for its original (join.ts); and longer than
 * a process may stand still (2 s) after its last renewal. When the store is away for longer,
 * another attempt takes the record over, and the writes of this one are refused.
 */
export const LEASE_MS = 2_900;
/**
 * A lease is longer by so many times the delay of the last renewal, up to a bound in milliseconds:
 * in a busy event loop the next renewal and its answer are as late.
 */
const LATE_FACTOR = 10;
export const LONGEST_LEASE_MS = 30_000;
/** Between two renewals, milliseconds. An attempt that is younger than this needs none. */
export const RENEW_EVERY_MS = 300;

/** Reservations asked about at a time: a store that comes back must not get all of them at once. */
const ASKED_AT_ONCE = 64;

/** The hold of one running attempt on its record. */
export interface Lease {
  /** Ends the renewals; the last write of the attempt gives the lease up. May be called again. */
  drop(): void;
}

/** Renews the leases of the attempts of this process. A process that dies or hangs loses them. */
export interface Leases {
  /** `atMostMs`: above the deadlines of the attempt, so that a bug holds no record for ever. */
  hold(record: PaymentRecord, atMostMs: number): Lease;
  /** Payments whose attempts run here, also those whose lease ended meanwhile. */
  running(): ReadonlySet<string>;
  /** Gives up all leases when the process ends, so that no other one waits. Never rejects. */
  releaseAll(): Promise<void>;
}

interface Held {
  /** A renewal is under way: a slow store is not asked again, and does not delay the others. */
  renewing: boolean;
  /** The store does not renew it any more. */
  lost: boolean;
  readonly record: PaymentRecord;
  readonly since: number;
  readonly until: number;
}

export function createLeases(
  ledger: Pick<PaymentLedger, 'renew' | 'note'>,
  time: Time = REAL_TIME,
  renewEveryMs: number = RENEW_EVERY_MS,
): Leases {
  const held = new LinkedList<Held>();
  let running = false;

  const renewals = async (): Promise<void> => {
    while ([...held].some(({ member }) => !member.lost)) {
      const due = time.now() + renewEveryMs;
      await time.sleep(renewEveryMs);
      const now = time.now();
      const leaseMs = Math.min(LEASE_MS + LATE_FACTOR * Math.max(0, Math.round(now - due)), LONGEST_LEASE_MS);
      for (const place of held) void renewDue(place, now, leaseMs);
    }
    running = false;
  };
  const renewDue = async (place: Place<Held>, now: number, leaseMs: number): Promise<void> => {
    const one = place.member;
    if (now >= one.until) held.remove(place);
    else if (!one.renewing && !one.lost && now - one.since >= renewEveryMs) {
      one.renewing = true;
      // A silent store may be back before the lease ends: only its "no" ends the renewals.
      const still = await ledger.renew(one.record, leaseMs).catch(() => true);
      one.renewing = false;
      one.lost = !still;
    }
  };

  return {
    hold(record, atMostMs) {
      const since = time.now();
      const place = held.add({ record, since, until: since + atMostMs, renewing: false, lost: false });
      if (!running) {
        running = true;
        void renewals();
      }
      return { drop: () => void held.remove(place) };
    },
    running() {
      const now = time.now();
      return new Set([...held].flatMap(({ member: { record, until } }) => (now < until ? [record.payId] : [])));
    },
    async releaseAll() {
      const left = [...held];
      for (const place of left) held.remove(place);
      await Promise.allSettled(
        left.map(({ member: { record } }) => ledger.note({ ...fencingToken(record), leaseMs: 0 })),
      );
    },
  };
}

/** Reservations that are given back when the store answers too late. */
export interface Reservations {
  /**
   * Reserves. A store that hung may carry it out after its call was answered with an error. So it
   * is asked again in the background, under the same owner, and what it then holds is given back:
   * the buyer's next try must not find its own proof reserved.
   * @throws what the ledger throws
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
