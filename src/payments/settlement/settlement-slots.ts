import type { Time } from '../../time/time.ts';
import { createSlots, type Slots } from './slots.ts';

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
export const SLOT_WAIT_MS = 3_000;

/**
 * Bounds what payers with slow settlements can hold of a peer's connections. A place stands in the name of its payer, so
 * only proofs that were verified may take one: else anybody could take the places of anybody.
 */
export type SettlementSlots = Slots;

export function createSettlementSlots(time?: Time): SettlementSlots {
  const bounds = { each: PAYER_SETTLEMENTS, eachWaiting: PAYER_WAITERS, all: ALL_SETTLEMENTS, waitMs: SLOT_WAIT_MS };
  const places = createSlots(bounds, time);
  return { within: (payer, step, crowded) => places.within(payer.toLowerCase(), step, crowded) };
}
