/** Limits how many log lines of one kind are written in a second. */

/** Lines of one kind in a second; the others of that second become one line with their number. */
export const LINES_A_SECOND = 10;
const SECOND_MS = 1_000;
/** Bound of the kinds in memory. They are words of the code, so it is never reached. */
const MAX_KINDS = 1_000;

/** The clock of a throttle. */
export interface ThrottleTime {
  now(): number;
  /** Calls `then` once after so many milliseconds; does not keep the process alive. */
  after(ms: number, then: () => void): void;
}

const REAL: ThrottleTime = {
  now: () => performance.now(),
  after: (ms, then) => void setTimeout(then, ms).unref(),
};

/**
 * Writes the first lines of each kind, and calls `heldBack` at the end of the second with the
 * number of the others: a fault that logs a line for every call would hide the lines that explain
 * it.
 */
export function throttled(
  heldBack: (kind: string, lines: number) => void,
  time: ThrottleTime = REAL,
): (kind: string, write: () => void) => void {
  const kinds = new Map<string, { since: number; written: number; held: number }>();
  const close = (kind: string): void => {
    const held = kinds.get(kind)?.held ?? 0;
    kinds.delete(kind);
    heldBack(kind, held);
  };
  return function throttle(kind, write) {
    const now = time.now();
    const known = kinds.get(kind);
    if (known === undefined || (known.held === 0 && now - known.since >= SECOND_MS)) {
      if (kinds.size < MAX_KINDS) kinds.set(kind, { since: now, written: 1, held: 0 });
      write();
    } else if (known.written < LINES_A_SECOND) {
      known.written += 1;
      write();
    } else {
      if (known.held === 0) time.after(Math.max(0, known.since + SECOND_MS - now), () => close(kind));
      known.held += 1;
    }
  };
}
