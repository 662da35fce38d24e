/** The slots of a process or of an adapter: how many calls may be in flight. */

/** Adds a hold on a slot; the result lets go of it, and the last one to do so frees the slot. */
export type Hold = () => () => void;

/** One count of calls in flight, which the load shedder reads and `limitConcurrency` changes. */
export interface Slots {
  /** Whether one more call may be admitted. */
  free(): boolean;
  /** Takes a slot, free or not, until all holds on it end; the first hold must be added at once. */
  take(): Hold;
  inFlight(): number;
}

/**
 * `atMost`: the calls that may be in flight at the same time (contract 3, admission). A function is
 * asked for each call, because the bound may change while calls are in flight. `onFreed`: a slot
 * is free again.
 */
export function createSlots(atMost: number | (() => number), onFreed?: () => void): Slots {
  const bound = typeof atMost === 'number' ? () => atMost : atMost;
  let inFlight = 0;
  return {
    free: () => inFlight < bound(),
    take() {
      inFlight += 1;
      let holds = 0;
      return () => {
        holds += 1;
        return () => {
          holds -= 1;
          if (holds > 0) return;
          inFlight -= 1;
          onFreed?.();
        };
      };
    },
    inFlight: () => inFlight,
  };
}
