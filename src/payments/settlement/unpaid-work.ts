/**
 * How much work a merchant may do for calls that are settled after it (`settle: after`) and end
 * unpaid: places for such calls, which one that ends unpaid keeps for a while.
 */

import { REAL_TIME, type Time } from '../../time/time.ts';
import { Counts } from './counts.ts';
import { PAYER_WAITERS, SLOT_WAIT_MS } from './slots.ts';
import { createTurns } from './turns.ts';

/** Calls that may wait where fewer may run: a few wait for whatever budget. */
const LEAST_WAITERS = 8;

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
}

/** A place in the budget, to be left once. */
interface Place {
  /** `unpaid`: the backend worked for nothing, so it stays taken for the window. */
  leave(how: 'settled' | 'unpaid'): void;
}

/**
 * Bounds unpaid work. A payer has one such call at a time: with one purse it cannot show the same
 * money to several.
 */
export interface UnpaidWork {
  /**
   * A place, at once or in turn. `crowded`: none came free in time, or as many calls wait as may:
   * as many as may run, and few of one payer. `exhausted`: so much of it ended unpaid that none
   * will come free for now.
   */
  enter(call: WorkFor): Promise<Place | 'crowded' | 'exhausted'>;
  /** Whether a resource is sold only with its money first to callers of this network. */
  exhausted(resourceId: string, network: string): boolean;
  /** The buyer paid after all, by another attempt. */
  paid(payId: string): void;
}

/** `limits`: of this process, asked for each call, because a reload changes them. */
export function createUnpaidWork(limits: () => UnpaidWorkLimits, time: Time = REAL_TIME): UnpaidWork {
  const running = new Counts();
  const unpaid = new Map<string, { readonly holders: readonly string[]; readonly until: number }>();
  const unpaidOf = new Counts();
  const turns = createTurns(SLOT_WAIT_MS, time);

  const limitsOf = ({ resourceId, network }: Pick<WorkFor, 'resourceId' | 'network'>): [string, number][] => {
    const { perResource, perNetwork, all } = limits();
    return [
      [`resource ${resourceId}`, perResource],
      [`network ${network}`, perNetwork],
      ['all', all],
    ];
  };
  const forget = (payId: string): boolean => {
    unpaidOf.add(unpaid.get(payId)?.holders ?? [], -1);
    return unpaid.delete(payId);
  };
  const forgetOld = (): void => {
    for (const [payId, { until }] of unpaid) if (until <= time.now()) forget(payId);
  };
  const isSpent = (call: Pick<WorkFor, 'resourceId' | 'network'>): boolean => {
    if (unpaid.size === 0) return false;
    forgetOld();
    return limitsOf(call).some(([holder, limit]) => unpaidOf.of(holder) >= limit);
  };
  const take = (call: WorkFor): Place | undefined => {
    forgetOld();
    const bounds = limitsOf(call);
    const isFull = bounds.some(([holder, limit]) => running.of(holder) + unpaidOf.of(holder) >= limit);
    if (isFull || running.of(payerOf(call)) > 0) return undefined;
    const holders = bounds.map(([holder]) => holder);
    const counted = [payerOf(call), ...holders];
    running.add(counted, 1);
    return {
      leave(how) {
        running.add(counted, -1);
        if (how === 'unpaid') {
          forget(call.payId);
          unpaid.set(call.payId, { holders, until: time.now() + limits().windowMs });
          unpaidOf.add(holders, 1);
        }
        turns.wake();
      },
    };
  };
  return {
    async enter(call) {
      if (isSpent(call)) return 'exhausted';
      const most = limitsOf(call).map(([holder, limit]) => [holder, Math.max(limit, LEAST_WAITERS)] as const);
      const waiting = [[payerOf(call), PAYER_WAITERS] as const, ...most];
      const place = take(call) ?? (await turns.wait(waiting, () => take(call)));
      return place ?? (isSpent(call) ? 'exhausted' : 'crowded');
    },
    exhausted: (resourceId, network) => isSpent({ resourceId, network }),
    paid(payId) {
      if (forget(payId)) turns.wake();
    },
  };
}

function payerOf({ payer }: WorkFor): string {
  return `payer ${payer.toLowerCase()}`;
}
