/**
 * Lines of one kind that are written within a second; the rest of that second is one line with
 * their number.
 */
export const LINES_A_SECOND = 10;
const SECOND_MS = 1_000;

/** Kinds that are told apart at a time; they are words of ours, so this is never met. */
const MAX_KINDS = 1_000;

/** Time as a throttle needs it. */
export interface ThrottleTime {
  now(): number;
  /** Calls back once after so many milliseconds; keeps no process alive. */
  after(ms: number, then: () => void): void;
}

const REAL: ThrottleTime = {
  now: () => performance.now(),
  after: (ms, then) => void setTimeout(then, ms).unref(),
};

/**
 * Lets the first lines of each kind through, and tells at the end of the second how many were held
 * back: one fault prints a line for every call it meets, and what it drowns is what explains it.
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
  return function spare(kind, write) {
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
