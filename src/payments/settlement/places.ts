/**
 * Bounds how much settles and works at a time: slots for settlements, and places for calls that are
 * settled after their work (`settle: after`). A call that ends unpaid keeps its place for a while.
 */

import { randomUUID } from 'node:crypto';
import { Counts, Limiter } from '../../limiter.ts';
import { REAL_TIME, type Time } from '../../time/time.ts';
import type { PaymentRecord } from '../ledger/ledger.ts';

/**
 * Settlements under way for one payer: enough for an agent that buys in parallel, and so few that
 * it takes 14 wallets with slow settlements to fill all places.
 */
export const PAYER_SETTLEMENTS = 8;
/** Calls of one payer that wait for one of its places. */
export const PAYER_WAITERS = 8;
/** Settlements under way in this process; readiness and earlier payments need connections too. */
export const ALL_SETTLEMENTS = 112;
/** Longest wait for a place, milliseconds: that of a copy (`JOIN_MS`), above most block times. */
export const SLOT_WAIT_MS = 3_000;

/**
 * Limits settlements by payer. Only verified proofs take a place: otherwise a caller could use up
 * those of every payer.
 */
export function limitSettlements(time?: Time): Limiter {
  return new Limiter({
    ...{ most: ALL_SETTLEMENTS, each: PAYER_SETTLEMENTS, eachWaiting: PAYER_WAITERS, waitMs: SLOT_WAIT_MS, time },
  });
}

/** One call with `settle: after` that was not paid. `amount`: display units. */
export interface UnpaidRow
  extends Pick<
    PaymentRecord,
    'requestId' | 'callId' | 'resourceId' | 'channel' | 'amount' | 'currency' | 'network' | 'payer'
  > {
  /** ISO 8601: when it became certain that nothing is paid; of failed work, when its call began. */
  readonly at: string;
  /** HTTP status of the answer; 0: none came. */
  readonly backendStatus: number;
  /** Why the payment came to nothing, as its 402 states it; else why there was nothing to pay. */
  readonly reason: string;
  readonly replayKey: string;
}

/** @param record one of `PaymentLedger.unpaid` */
export function unpaidWork(record: PaymentRecord): UnpaidRow {
  const { requestId, callId, resourceId, channel, amount, currency, network, payer } = record;
  return {
    at: new Date(record.changedAt).toISOString(),
    ...{ requestId, callId, resourceId, channel, amount, currency, network, payer },
    replayKey: record.payId,
    backendStatus: record.answered ?? 0,
    reason: record.reason ?? '',
  };
}

/** Work whose reservation is given back, because there was no answer to sell. */
export function failedWork(record: PaymentRecord, status: number, reason: string): UnpaidRow {
  return unpaidWork({ ...record, answered: status, reason });
}

/** Least number of calls that may wait for a holder: a small budget has waiters too. */
const LEAST_WAITERS = 8;
/** Between two tries for a place that other processes have, milliseconds. */
const SHARED_PAUSE_MS = 100;
/** Longest time without asking the store whether its budget is still spent, milliseconds. */
const SPENT_MS = 10_000;
/** The holder that counts every call, and the prefixes of the names of payers and resources. */
const ALL = 'all';
const PAYER = 'payer ';
const RESOURCE = 'resource ';

/** The budget, in calls that are under way or ended unpaid within the window. */
export interface UnpaidWorkLimits {
  readonly perResource: number;
  readonly perNetwork: number;
  readonly all: number;
  /** How long a call that ended unpaid counts, milliseconds. */
  readonly windowMs: number;
}

/** One call, as the budget counts it. `network`: where it came from. */
export interface WorkFor {
  readonly payId: string;
  readonly payer: string;
  readonly resourceId: string;
  readonly network: string;
  /** Longest time that the call may take, milliseconds. */
  readonly atMostMs: number;
}

/**
 * The budget that the processes of one store share. A place has the name of its call and ends by
 * itself, because its process may die. Each holder counts the calls that ended unpaid.
 */
export interface SharedWork {
  /**
   * Takes a place of each holder for `forMs`, or gives the first full holder. `spentForMs`: until
   * its unpaid work frees a place; 0: a running call may free one at any time. @throws StoreError
   */
  take(
    name: string,
    bounds: readonly (readonly [holder: string, most: number])[],
    forMs: number,
  ): Promise<{ readonly holder: string; readonly spentForMs: number } | undefined>;
  /** Gives a place back; `unpaid` counts the call under `name` for `forMs`. @throws StoreError */
  leave(
    name: string,
    holders: readonly string[],
    unpaid?: { readonly name: string; readonly forMs: number },
  ): Promise<void>;
  /** Ends the count of an unpaid call, whichever process counted it. @throws StoreError */
  free(unpaid: string): Promise<void>;
  /** Names of calls that ended unpaid, the latest first. @throws StoreError */
  listed(holder: string, limit: number): Promise<readonly string[]>;
}

/** A place in the budget, to be left once. */
export interface Place {
  /**
   * `unpaid`: the answer is not paid yet, so the place stays taken until it is, or for the window.
   * A row: there is no answer to pay for, so the place stays taken for the window.
   */
  leave(how: 'settled' | 'unpaid' | UnpaidRow): void;
}

export type UnpaidWork = ReturnType<typeof createUnpaidWork>;

interface Spent {
  readonly holders: readonly string[];
  readonly until: number;
  readonly row?: UnpaidRow;
}

/**
 * Bounds unpaid work. A payer has one such call in a process at a time, so that it cannot show the
 * same money to several. The store does not share this bound, because the place of a process that
 * died would stop its payer. `limits`: asked for each call, because a reload changes them.
 */
export function createUnpaidWork(limits: () => UnpaidWorkLimits, time: Time = REAL_TIME, shared?: SharedWork) {
  /** By payId, or by a random name where there is nothing to pay for. */
  const unpaid = new Map<string, Spent>();
  /** Holders whose budget is spent by all processes together, and until when that is believed. */
  const spentByAll = new Map<string, number>();
  const unpaidOf = new Counts();
  const limiter = new Limiter({
    ...{ most: Number.POSITIVE_INFINITY, waitMs: SLOT_WAIT_MS, time },
    each(holder) {
      forgetOld();
      return limitOf(holder) - unpaidOf.of(holder);
    },
    eachWaiting: (holder) => (holder.startsWith(PAYER) ? PAYER_WAITERS : Math.max(limitOf(holder), LEAST_WAITERS)),
  });
  const limitOf = (holder: string): number => {
    const { perResource, perNetwork, all } = limits();
    if (holder === ALL) return all;
    if (holder.startsWith(PAYER)) return 1;
    return holder.startsWith(RESOURCE) ? perResource : perNetwork;
  };
  const boundsOf = (call: Sold): [string, number][] => holdersOf(call).map((holder) => [holder, limitOf(holder)]);
  const forget = (payId: string): boolean => {
    unpaidOf.add(unpaid.get(payId)?.holders ?? [], -1);
    return unpaid.delete(payId);
  };
  const forgetOld = (): void => {
    for (const [payId, { until }] of unpaid) if (until <= time.now()) forget(payId);
    for (const [holder, until] of spentByAll) if (until <= time.now()) spentByAll.delete(holder);
  };
  const isSpent = (call: Sold): boolean => {
    forgetOld();
    return boundsOf(call).some(([holder, limit]) => unpaidOf.of(holder) >= limit || spentByAll.has(holder));
  };
  const placeFor = async (call: WorkFor): Promise<Place | undefined> => {
    const client = PAYER + call.payer.toLowerCase();
    const holders = holdersOf(call);
    const admitted = await limiter.wait({ client, holders: [client, ...holders] });
    return (
      admitted && {
        leave(how) {
          if (how !== 'settled') {
            const name = how === 'unpaid' ? call.payId : randomUUID();
            forget(name);
            const spent = { holders, until: time.now() + limits().windowMs };
            unpaid.set(name, how === 'unpaid' ? spent : { ...spent, row: how });
            unpaidOf.add(holders, 1);
          }
          admitted.leave();
        },
      }
    );
  };
  /** Takes a place in the store too: calls of other processes may have all of them. */
  const takeShared = async (call: WorkFor, own: Place, work: SharedWork) => {
    const bounds = boundsOf(call);
    const holders = bounds.map(([holder]) => holder);
    // An attempt takes over the place of a dead attempt at the same payment.
    const name = call.payId;
    for (const giveUpAt = time.now() + SLOT_WAIT_MS; ; await time.sleep(SHARED_PAUSE_MS)) {
      const full = await work.take(name, bounds, call.atMostMs);
      if (full === undefined) break;
      const { holder, spentForMs } = full;
      if (spentForMs > 0) spentByAll.set(holder, time.now() + Math.min(spentForMs, SPENT_MS));
      if (spentForMs > 0 || time.now() >= giveUpAt) return spentForMs > 0 ? 'exhausted' : 'crowded';
    }
    const leave: Place['leave'] = (how) => {
      // The store alone counts unpaid calls: another process may learn that one is paid.
      own.leave('settled');
      const kept = how === 'unpaid' ? call.payId : JSON.stringify(how);
      const left = how === 'settled' ? undefined : { name: kept, forMs: limits().windowMs };
      // A place that the store does not take back ends by itself.
      void work.leave(name, holders, left).catch(() => undefined);
    };
    return { leave };
  };
  return {
    /**
     * Takes a place, at once or in turn. `crowded`: no place came free in time, or too many calls
     * wait already: as many as may run, or `PAYER_WAITERS` of one payer. `exhausted`: so many calls
     * ended unpaid that no place comes free for now.
     */
    async enter(call: WorkFor): Promise<Place | 'crowded' | 'exhausted'> {
      if (isSpent(call)) return 'exhausted';
      const place = await placeFor(call);
      if (place === undefined) return isSpent(call) ? 'exhausted' : 'crowded';
      if (shared === undefined) return place;
      let taken: Awaited<ReturnType<typeof takeShared>> = 'crowded';
      try {
        taken = await takeShared(call, place, shared);
      } finally {
        if (typeof taken === 'string') place.leave('settled');
      }
      return taken;
    },
    /** Whether a resource is sold only with its money first to callers of this network. */
    exhausted: (resourceId: string, network: string): boolean => isSpent({ resourceId, network }),
    /** The buyer paid after all, by another attempt. */
    paid(payId: string): void {
      void shared?.free(payId).catch(() => undefined);
      if (forget(payId)) limiter.serve();
    },
    /** Work of the window for which there was nothing to pay, the latest first. */
    async failed(limit: number): Promise<readonly UnpaidRow[]> {
      if (shared !== undefined) {
        // A row is JSON; a call that may still be paid has the name of its payment.
        const names = (await shared.listed(ALL, limit)).filter((name) => name.startsWith('{'));
        return names.map((name) => JSON.parse(name) as UnpaidRow);
      }
      forgetOld();
      return [...unpaid.values()]
        .flatMap(({ row }) => row ?? [])
        .slice(-limit)
        .reverse();
    },
  };
}

type Sold = Pick<WorkFor, 'resourceId' | 'network'>;

/** The holders whose budgets a call takes from; the store uses the same names. */
function holdersOf({ resourceId, network }: Sold): string[] {
  return [RESOURCE + resourceId, `network ${network}`, ALL];
}
