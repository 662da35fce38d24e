/**
 * Tools of each attempt at a payment: its lease on the record, repeated writes, the pauses before
 * the next try, and the steps that it passes.
 */

import { channel } from 'node:diagnostics_channel';
import { newId } from '../../events/event.ts';
import { LinkedList, type Place } from '../../linked-list.ts';
import { REAL_TIME, type Time } from '../../time/time.ts';
import type { Holder, PaymentLedger, PaymentRecord, Reserve } from '../ledger/ledger.ts';
import { RETRY_WINDOW_MS } from '../ledger/table.ts';

/** The claim on a record with a fresh step token, for one write and its repetitions. */
export function fencingToken(record: PaymentRecord): Holder {
  return { payId: record.payId, owner: record.owner, fence: record.fence, step: newId(), seen: record };
}

/**
 * Time that a record stays with an attempt that renews no more, milliseconds. A buyer waits that
 * long after a `kill -9`, so it is shorter than the wait of a copy (`JOIN_MS`); and it is longer
 * than a process may stand still (2 s) after its last renewal. When the store is away for longer,
 * another attempt takes the record over, and the writes of this one are refused.
 */
export const LEASE_MS = 2_900;
/**
 * Lengthens a lease by this multiple of the last renewal's delay, up to `LONGEST_LEASE_MS`: a busy
 * event loop delays the next renewal and its answer as much.
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

interface Held {
  /** A renewal is under way: a slow store is not asked again, and does not delay the others. */
  renewing: boolean;
  /** The store does not renew it any more. */
  lost: boolean;
  readonly record: PaymentRecord;
  readonly since: number;
  readonly until: number;
}

export type Leases = ReturnType<typeof createLeases>;

/** Renews the leases of the attempts of this process. A process that dies or hangs loses them. */
export function createLeases(ledger: PaymentLedger, time: Time = REAL_TIME, renewEveryMs: number = RENEW_EVERY_MS) {
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
    /** `atMostMs`: above the deadlines of the attempt, so that a bug holds no record for ever. */
    hold(record: PaymentRecord, atMostMs: number): Lease {
      const since = time.now();
      const place = held.add({ record, since, until: since + atMostMs, renewing: false, lost: false });
      if (!running) {
        running = true;
        void renewals();
      }
      return { drop: () => void held.remove(place) };
    },
    /** Payments whose attempts run here, also those whose lease ended meanwhile. */
    running(): ReadonlySet<string> {
      const now = time.now();
      return new Set([...held].flatMap(({ member: { record, until } }) => (now < until ? [record.payId] : [])));
    },
    /** Gives up all leases when the process ends, so that no other one waits. Never rejects. */
    async releaseAll(): Promise<void> {
      const left = [...held];
      for (const place of left) held.remove(place);
      await Promise.allSettled(
        left.map(({ member: { record } }) => ledger.note({ ...fencingToken(record), leaseMs: 0 })),
      );
    },
  };
}

/**
 * Reserves over a ledger. A store that hung may carry out a reservation after the caller got an
 * error. So the store is asked again in the background, under the same owner, and a record that it
 * grants is given back: the buyer's next try must not find its own proof reserved. The returned
 * function throws the ledger's errors.
 */
export function reservingOver(ledger: PaymentLedger, time?: Time): PaymentLedger['reserve'] {
  let asked = 0;
  const giveBack = async (command: Reserve): Promise<void> => {
    const answer = await persist(() => ledger.reserve(command), time, PATIENT_PAUSES_MS);
    if (answer.kind !== 'granted') return;
    const { record } = answer;
    if (record.state === 'reserved') await ledger.discard(fencingToken(record), []);
    else await ledger.note({ ...fencingToken(record), leaseMs: 0 });
  };
  return async function reserve(command) {
    try {
      return await ledger.reserve(command);
    } catch (thrown) {
      if (asked < ASKED_AT_ONCE && mayStandAfter(thrown)) {
        asked += 1;
        // A record that is not given back is free when its lease ends.
        void giveBack(command)
          .catch(() => undefined)
          .finally(() => {
            asked -= 1;
          });
      }
      throw thrown;
    }
  };
}

/** Bounds of the wait before a reconciler looks at an uncertain settlement again, milliseconds. */
const SHORTEST_WAIT_MS = 1_000;
export const LONGEST_WAIT_MS = 60_000;
/** An old settlement is not decided in the next second, so the wait is a share of its age. */
const SHARE_OF_AGE = 1 / 4;
/** Tries of the reconciler to deliver, before the delivery is left to the buyer. */
export const BACKGROUND_TRIES = 6;
/** Failed deliveries after which the merchant owes a refund before the window ends. */
export const MOST_TRIES = 100;
/** Least time from settlement to a refund for `MOST_TRIES`, milliseconds: an outage ends sooner. */
export const SHORTEST_WINDOW_MS = 60 * 60 * 1_000;
/**
 * Most deliveries of which bytes may leave before the backend is called no more: each may have been
 * read to its end. A kept answer has no such bound.
 */
export const MOST_SENDINGS = 3;

/** Between the end of an authorization and the block that shows it, milliseconds. */
const BLOCK_MS = 5_000;

/** Pauses between writes, milliseconds: a store fails over meanwhile, and a caller still waits. */
const PAUSES_MS: readonly number[] = [50, 250, 1_000];
/** The same where no caller waits: a store that restarts or fails over must not cost the write. */
export const PATIENT_PAUSES_MS: readonly number[] = [50, 250, 1_000, 2_000, 4_000, 8_000, 15_000];

/** When to look again at a settlement whose outcome is open, milliseconds from now. */
export function lookAgainMs({ changedAt, reservedAt }: PaymentRecord): number {
  return Math.round(Math.min(Math.max((changedAt - reservedAt) * SHARE_OF_AGE, SHORTEST_WAIT_MS), LONGEST_WAIT_MS));
}

/** When the chain shows the end of an unsent authorization, milliseconds from the last change. */
export function windowEndMs(record: PaymentRecord): number {
  const { validBefore, changedAt } = record;
  return Math.max(validBefore * 1_000 + BLOCK_MS - changedAt, lookAgainMs(record));
}

/** Pause before the next background delivery, milliseconds: it lets the buyer's retry go first. */
export function deliverAgainMs(tries: number): number {
  return Math.min(SHORTEST_WAIT_MS * 2 ** Math.min(tries, 10), LONGEST_WAIT_MS);
}

/** How long an undelivered payment can be collected, milliseconds from the last change. */
export function windowLeftMs({ settledAt, changedAt }: PaymentRecord): number {
  return Math.max(0, (settledAt ?? changedAt) + RETRY_WINDOW_MS - changedAt);
}

/** No write was confirmed. `mayStand`: one of them may have been made. */
export interface Unwritten {
  readonly kind: 'unwritten';
  readonly cause: unknown;
  readonly mayStand: boolean;
}

/**
 * Repeats a write that must not be lost once money has moved. The command carries one step token,
 * so a repetition after a lost reply changes nothing twice. When the store stays silent this does
 * not throw but returns `unwritten`: the call is answered "uncertain", and after the lease another
 * attempt goes on.
 */
export async function persist<T>(
  write: () => Promise<T>,
  time: Pick<Time, 'sleep'> = REAL_TIME,
  pauses: Iterable<number> = PAUSES_MS,
): Promise<T | Unwritten> {
  const left = pauses[Symbol.iterator]();
  let mayStand = false;
  for (;;) {
    try {
      return await write();
    } catch (cause) {
      mayStand ||= mayStandAfter(cause);
      const pause = left.next();
      if (pause.done === true) return { kind: 'unwritten', cause, mayStand };
      await time.sleep(pause.value);
    }
  }
}

/** The same pause until `forMs` milliseconds are over, however long each write takes. */
export function* pausesFor(forMs: number, pauseMs: number, time: Pick<Time, 'now'>): Iterable<number> {
  const end = time.now() + forMs;
  while (time.now() < end) yield pauseMs;
}

/** Whether a write that failed so may have been made: yes, unless the store's error excludes it. */
export function mayStandAfter(cause: unknown): boolean {
  return !(cause instanceof Error && 'mayStand' in cause && cause.mayStand === false);
}

/**
 * The steps in order. A subscriber of `acg.payment` gets `{ step, payId }` at once, in the same
 * turn, so a test can end the process exactly there.
 */
export type PaymentStep =
  | 'reserved'
  | 'verified'
  | 'working'
  | 'worked'
  | 'settling'
  | 'sending'
  | 'signed'
  | 'answered'
  | 'settled'
  | 'forwarding'
  | 'relaying'
  | 'relayed'
  | 'delivered';

export const PAYMENT_CHANNEL = 'acg.payment';

const payments = channel(PAYMENT_CHANNEL);

/** Reports that a paid call has passed a step; without a subscriber it costs a comparison. */
export function passed(step: PaymentStep, payId: string): void {
  if (payments.hasSubscribers) payments.publish({ step, payId });
}
