/**
 * How much work a merchant may do for calls that are settled after it (`settle: after`) and end
 * unpaid: places for such calls, which one that ends unpaid keeps for a while.
 */

import { REAL_TIME, type Time } from '../../time/time.ts';
import { SLOT_WAIT_MS } from './slots.ts';

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
   * A place, at once or in turn. `crowded`: none came free in time. `exhausted`: so much of it
   * ended unpaid that none will come free for now.
   */
  enter(call: WorkFor): Promise<Place | 'crowded' | 'exhausted'>;
  /** Whether a resource is sold only with its money first to callers of this network. */
  exhausted(resourceId: string, network: string): boolean;
  /** The buyer paid after all, by another attempt. */
  paid(payId: string): void;
}

/** `limits`: of this process, asked for each call, because a reload changes them. */
export function createUnpaidWork(limits: () => UnpaidWorkLimits, time: Time = REAL_TIME): UnpaidWork {
  const running = new Map<string, number>();
  const unpaid = new Map<string, { readonly holders: readonly string[]; readonly until: number }>();
  const waiting = new Set<() => void>();

  const limitsOf = ({ resourceId, network }: Pick<WorkFor, 'resourceId' | 'network'>): ReadonlyMap<string, number> => {
    const { perResource, perNetwork, all } = limits();
    return new Map([
      [`resource ${resourceId}`, perResource],
      [`network ${network}`, perNetwork],
      ['all', all],
    ]);
  };
  const forget = (): void => {
    for (const [payId, { until }] of unpaid) if (until <= time.now()) unpaid.delete(payId);
  };
  const unpaidOf = (holder: string): number => {
    let count = 0;
    for (const { holders } of unpaid.values()) if (holders.includes(holder)) count += 1;
    return count;
  };
  const isSpent = (call: Pick<WorkFor, 'resourceId' | 'network'>): boolean => {
    if (unpaid.size === 0) return false;
    forget();
    return [...limitsOf(call)].some(([holder, limit]) => unpaidOf(holder) >= limit);
  };
  const taken = (holder: string): number => (running.get(holder) ?? 0) + unpaidOf(holder);
  const hasRoom = (call: WorkFor): boolean => {
    forget();
    return !running.has(payerOf(call)) && [...limitsOf(call)].every(([holder, limit]) => taken(holder) < limit);
  };
  const count = (holders: readonly string[], by: 1 | -1): void => {
    for (const holder of holders) {
      const next = (running.get(holder) ?? 0) + by;
      if (next > 0) running.set(holder, next);
      else running.delete(holder);
    }
  };
  const wake = (): void => {
    for (const look of [...waiting]) look();
  };
  const placeOf = (call: WorkFor): Place => {
    const holders = [...limitsOf(call).keys()];
    const counted = [payerOf(call), ...holders];
    count(counted, 1);
    return {
      leave(how) {
        count(counted, -1);
        if (how === 'unpaid') unpaid.set(call.payId, { holders, until: time.now() + limits().windowMs });
        wake();
      },
    };
  };
  return {
    enter(call) {
      if (isSpent(call)) return Promise.resolve('exhausted');
      if (hasRoom(call)) return Promise.resolve(placeOf(call));
      const { promise, resolve } = Promise.withResolvers<Place | 'crowded' | 'exhausted'>();
      const look = (): void => {
        if (!hasRoom(call)) return;
        waiting.delete(look);
        resolve(placeOf(call));
      };
      waiting.add(look);
      void time.sleep(SLOT_WAIT_MS).then(() => {
        // A place may have come free by time, which wakes no call.
        if (waiting.has(look)) look();
        if (waiting.delete(look)) resolve(isSpent(call) ? 'exhausted' : 'crowded');
      });
      return promise;
    },
    exhausted: (resourceId, network) => isSpent({ resourceId, network }),
    paid(payId) {
      if (unpaid.delete(payId)) wake();
    },
  };
}

function payerOf({ payer }: WorkFor): string {
  return `payer ${payer.toLowerCase()}`;
}
