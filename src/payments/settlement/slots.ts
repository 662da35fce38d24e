import { REAL_TIME, type Time } from '../../time/time.ts';

/** How many steps may run at a time. */
interface SlotBounds {
  /** Steps of one holder that run at a time. */
  readonly each: number;
  /** Calls of one holder that wait for one of its own places. */
  readonly eachWaiting: number;
  /** Steps that run at a time in this process. */
  readonly all: number;
  /** How long a call waits for a place, milliseconds. */
  readonly waitMs: number;
}

/**
 * Places that holders share: nobody takes more than his part, and who waits for his own does not
 * stand in the way of others.
 */
interface Slots {
  /**
   * Runs a step in a place of its own: at once or in turn. `crowded` runs instead when none came
   * free in time, or when too many of this holder wait already.
   */
  within<T>(holder: string, step: () => Promise<T>, crowded: () => Promise<T>): Promise<T>;
}

interface Waiter {
  readonly holder: string;
  readonly admit: (admitted: boolean) => void;
}

export function createSlots({ each, eachWaiting, all: most, waitMs }: SlotBounds, time: Time = REAL_TIME): Slots {
  const taken = new Map<string, number>();
  /** In the order they came. */
  const waiting = new Set<Waiter>();
  let all = 0;

  const hasRoom = (holder: string): boolean => all < most && (taken.get(holder) ?? 0) < each;
  const enter = (holder: string): void => {
    all += 1;
    taken.set(holder, (taken.get(holder) ?? 0) + 1);
  };
  const leave = (holder: string): void => {
    all -= 1;
    const left = (taken.get(holder) ?? 0) - 1;
    if (left > 0) taken.set(holder, left);
    else taken.delete(holder);
    // Past those whose holder has no room: they wait for their own steps, and others must not wait
    // for them.
    const next = [...waiting].find((waiter) => hasRoom(waiter.holder));
    if (next === undefined) return;
    waiting.delete(next);
    enter(next.holder);
    next.admit(true);
  };
  const inTurn = (holder: string): Promise<boolean> => {
    const before = [...waiting].filter((other) => other.holder === holder).length;
    if (before >= eachWaiting) return Promise.resolve(false);
    const { promise, resolve: admit } = Promise.withResolvers<boolean>();
    const waiter = { holder, admit };
    waiting.add(waiter);
    void time.sleep(waitMs).then(() => {
      if (waiting.delete(waiter)) admit(false);
    });
    return promise;
  };

  return {
    async within(holder, step, crowded) {
      if (hasRoom(holder)) enter(holder);
      else if (!(await inTurn(holder))) return crowded();
      try {
        return await step();
      } finally {
        leave(holder);
      }
    },
  };
}

/**
 * Settlements under way for one payer: enough for an agent that buys in parallel, and so few that
 * it takes a dozen wallets whose settlements hang to fill the house.
 */
export const PAYER_SETTLEMENTS = 8;
/** Calls of one payer that wait for one of its own places. */
export const PAYER_WAITERS = 8;
/**
 * Settlements under way in this process. Fewer than the connections to a peer, which readiness and
 * earlier payments need too.
 */
export const ALL_SETTLEMENTS = 112;
/**
 * How long a call waits for a place, milliseconds: as long as a copy waits for its original, and
 * more than a block of most networks.
 */
export const SLOT_WAIT_MS = 3_000;

/**
 * Bounds what payers with slow settlements can hold of a peer's connections. A place stands in the
 * name of its payer, so only proofs that were verified may take one: else anybody could take the
 * places of anybody.
 */
export type SettlementSlots = Slots;

export function createSettlementSlots(time?: Time): SettlementSlots {
  const bounds = { each: PAYER_SETTLEMENTS, eachWaiting: PAYER_WAITERS, all: ALL_SETTLEMENTS, waitMs: SLOT_WAIT_MS };
  const places = createSlots(bounds, time);
  return { within: (payer, step, crowded) => places.within(payer.toLowerCase(), step, crowded) };
}
