import { REAL_TIME, type Time } from '../time.ts';

/**
 * Settlements under way for one payer: enough for an agent that buys in parallel, and so few that it takes a dozen wallets whose
 * settlements hang to fill the house.
 */
export const PAYER_SETTLEMENTS = 8;
/** Calls of one payer that wait for one of its own places. */
export const PAYER_WAITERS = 8;
/** Settlements under way in this process. Fewer than the connections to a peer, which readiness and earlier payments need too. */
export const ALL_SETTLEMENTS = 112;
/** How long a call waits for a place, milliseconds: as long as a copy waits for its original, and more than a block of most networks. */
export const PLACE_WAIT_MS = 3_000;

/** Bounds what payers with slow settlements can hold of a peer's connections (security X18). */
export interface SettlementPlaces {
  /**
   * Runs a step that asks the rail about a payment, or settles it, in a place of its own: at once or in turn. `crowded` runs instead when
   * none came free in time, or when too many of this payer wait already.
   */
  within<T>(payer: string, step: () => Promise<T>, crowded: () => Promise<T>): Promise<T>;
}

interface Waiter {
  readonly payer: string;
  readonly admit: (admitted: boolean) => void;
}

export function createSettlementPlaces(time: Time = REAL_TIME): SettlementPlaces {
  const taken = new Map<string, number>();
  /** In the order they came. */
  const waiting = new Set<Waiter>();
  let all = 0;

  const hasRoom = (payer: string): boolean => all < ALL_SETTLEMENTS && (taken.get(payer) ?? 0) < PAYER_SETTLEMENTS;
  const enter = (payer: string): void => {
    all += 1;
    taken.set(payer, (taken.get(payer) ?? 0) + 1);
  };
  const leave = (payer: string): void => {
    all -= 1;
    const left = (taken.get(payer) ?? 0) - 1;
    if (left > 0) taken.set(payer, left);
    else taken.delete(payer);
    // Past those whose payer has no room: they wait for their own settlements, and others must not wait for them.
    const next = [...waiting].find((waiter) => hasRoom(waiter.payer));
    if (next === undefined) return;
    waiting.delete(next);
    enter(next.payer);
    next.admit(true);
  };
  const inTurn = (payer: string): Promise<boolean> => {
    const before = [...waiting].filter((other) => other.payer === payer).length;
    if (before >= PAYER_WAITERS) return Promise.resolve(false);
    const { promise, resolve: admit } = Promise.withResolvers<boolean>();
    const waiter = { payer, admit };
    waiting.add(waiter);
    void time.sleep(PLACE_WAIT_MS).then(() => {
      if (waiting.delete(waiter)) admit(false);
    });
    return promise;
  };

  return {
    async within(spelled, step, crowded) {
      const payer = spelled.toLowerCase();
      if (hasRoom(payer)) enter(payer);
      else if (!(await inTurn(payer))) return crowded();
      try {
        return await step();
      } finally {
        leave(payer);
      }
    },
  };
}
