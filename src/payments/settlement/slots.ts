/**
 * Slots that several holders share, and the slots for settlements: a payer with slow settlements
 * must not use up what other payers need.
 */

import { Counts } from '../../counts.ts';
import { REAL_TIME, type Time } from '../../time/time.ts';
import { createTurns } from './turns.ts';

/**
 * Settlements under way for one payer: enough for an agent that buys in parallel, and so few that
 * only a dozen wallets with slow settlements take all slots.
 */
export const PAYER_SETTLEMENTS = 8;
/** Calls of one payer that wait for one of its slots. */
export const PAYER_WAITERS = 8;
/** Settlements under way in this process; readiness and earlier payments need connections too. */
export const ALL_SETTLEMENTS = 112;
/** How long a call waits, milliseconds: as long as a copy (join.ts), and more than most blocks. */
export const SLOT_WAIT_MS = 3_000;

/** Counts every step. No holder has this name. */
const ALL = '';

/** How many steps may run at a time. */
interface SlotBounds {
  /** Steps of one holder that run at a time. */
  readonly each: number;
  /** Calls of one holder that wait for one of its slots. */
  readonly eachWaiting: number;
  /** Steps that run at a time in this process. */
  readonly all: number;
  /** How long a call waits for a slot, milliseconds. */
  readonly waitMs: number;
}

/**
 * Slots with a bound for each holder, however spelled; a holder that waits for its own does not
 * delay others.
 */
export function createSlots({ each, eachWaiting, all: most, waitMs }: SlotBounds, time: Time = REAL_TIME) {
  const taken = new Counts();
  const turns = createTurns(waitMs, time);

  const enter = (holder: string): true | undefined => {
    if (taken.of(ALL) >= most || taken.of(holder) >= each) return undefined;
    taken.add([ALL, holder], 1);
    return true;
  };

  const runIn = async <T>(holder: string, step: () => Promise<T>): Promise<T> => {
    try {
      return await step();
    } finally {
      taken.add([ALL, holder], -1);
      turns.wake();
    }
  };

  return {
    /**
     * Runs a step in a slot, at once or in turn. Undefined: no slot came free in time, or too many
     * calls of this holder wait already, and nothing ran.
     */
    async within<T>(name: string, step: () => Promise<T>): Promise<T | undefined> {
      const holder = name.toLowerCase();
      const entered = enter(holder) ?? (await turns.wait([[holder, eachWaiting]], () => enter(holder)));
      return entered && runIn(holder, step);
    },
    /** Runs a step in a slot that is free now. Undefined: there is none, and nothing ran. */
    atOnce<T>(name: string, step: () => Promise<T>): Promise<T> | undefined {
      const holder = name.toLowerCase();
      return enter(holder) && runIn(holder, step);
    },
  };
}

export type SettlementSlots = ReturnType<typeof createSlots>;

/**
 * Slots by payer. Only verified proofs take one: otherwise a caller could use up the slots of every
 * payer.
 */
export function createSettlementSlots(time?: Time): SettlementSlots {
  const bounds = {
    each: PAYER_SETTLEMENTS,
    eachWaiting: PAYER_WAITERS,
    all: ALL_SETTLEMENTS,
    waitMs: SLOT_WAIT_MS,
  };
  return createSlots(bounds, time);
}
