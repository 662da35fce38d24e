/** Gives a place back once everything that holds it has ended. */
export type Hold = () => () => void;

/**
 * The slots of calls in flight: one count that the load shedder, which only looks, and the
 * middleware that admits share.
 */
export interface Slots {
  /** Whether one more call may come in. */
  free(): boolean;
  /**
   * Takes a place, whether one is free or not. It is given back when every hold on it was let go;
   * the first one must be taken at once.
   */
  take(): Hold;
  inFlight(): number;
}

/** `atMost`: the calls that may be in flight at the same time (contract 3, admission). */
export function createSlots(atMost: number): Slots {
  let inFlight = 0;
  return {
    free: () => inFlight < atMost,
    take() {
      inFlight += 1;
      let holds = 0;
      return () => {
        holds += 1;
        return () => {
          holds -= 1;
          if (holds === 0) inFlight -= 1;
        };
      };
    },
    inFlight: () => inFlight,
  };
}
