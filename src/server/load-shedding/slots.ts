/** The slots of a process or of an adapter: how many calls may be in flight. */

import type { ServerResponse } from 'node:http';
import { LinkedList } from '../../linked-list.ts';
import { onceClosed } from '../http/once-closed.ts';

/** Adds a hold on a slot; the result lets go of it, and the last one to do so frees the slot. */
export type Hold = () => () => void;

/** One count of calls in flight, which the load shedder reads and `limitConcurrency` changes. */
export interface Slots {
  /** Whether one more call may be admitted. */
  free(): boolean;
  /**
   * Takes a slot, free or not, until all holds on it end; the first hold must be added at once.
   * `isAnswering`: whether bytes of the answer still go out, which may take long.
   */
  take(isAnswering?: () => boolean): Hold;
  inFlight(): number;
  /** Frees the slots of calls that began before and do not answer. @returns how many */
  freeLost(beganBefore: number): number;
}

/**
 * `atMost`: the calls that may be in flight at the same time (contract 3, admission). A function is
 * asked for each call, because the bound may change while calls are in flight. `onFreed`: a slot
 * is free again.
 */
export function createSlots(atMost: number | (() => number), onFreed?: () => void): Slots {
  const bound = typeof atMost === 'number' ? () => atMost : atMost;
  /** In the order of their beginnings, on the clock of `performance.now()`. */
  const taken = new LinkedList<{ readonly since: number; readonly isAnswering: () => boolean }>();
  return {
    free: () => taken.size < bound(),
    take(isAnswering = () => false) {
      const slot = taken.add({ since: performance.now(), isAnswering });
      let holds = 0;
      return () => {
        holds += 1;
        return () => {
          holds -= 1;
          if (holds === 0 && taken.remove(slot)) onFreed?.();
        };
      };
    },
    inFlight: () => taken.size,
    freeLost(beganBefore) {
      const before = taken.size;
      for (const slot of taken) {
        const { since, isAnswering } = slot.member;
        if (since >= beganBefore) break;
        if (!isAnswering() && taken.remove(slot)) onFreed?.();
      }
      return before - taken.size;
    },
  };
}

/** Takes a slot for the call that this response answers, until the response is closed at least. */
export function takeSlot(slots: Slots, res: ServerResponse): Hold {
  const hold = slots.take(() => res.headersSent && !res.closed && !res.req.socket.destroyed);
  onceClosed(res, hold());
  return hold;
}
