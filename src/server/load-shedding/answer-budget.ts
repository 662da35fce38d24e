/**
 * How long an answer of a free call waits for room before its caller is told to come again,
 * milliseconds.
 */
export const FREE_WAIT_MS = 2_000;
/**
 * The same for a paid one: what was bought is worth the wait, and a third of what the merchant may
 * be held back for.
 */
export const PAID_WAIT_MS = 20_000;

/** Who waits for room. */
export interface Asking {
  readonly bytes: number;
  /** Paid answers go first, and wait longer. */
  readonly paid: boolean;
}

interface Waiting extends Asking {
  readonly grant: (release: () => void) => void;
}

/**
 * The memory of the process for answers that an adapter must hold as a whole. Whoever needs room
 * asks for all of it once, before the bytes are read, and never for more while holding some: so
 * nobody can wait for somebody who waits for him. First come first served, paid before free; the
 * next in line is not overtaken by a smaller one, or a large answer would never get its turn.
 */
export interface AnswerBudget {
  /**
   * Resolves with what gives the room back, to be called once; with undefined when none came in
   * time.
   */
  reserve(asking: Asking): Promise<(() => void) | undefined>;
  /** Bytes that are given out. */
  reserved(): number;
  waiting(): number;
}

/** `atMost`: bytes at the same time. An answer larger than that gets all of it, alone. */
export function createAnswerBudget(atMost: number): AnswerBudget {
  let reserved = 0;
  const lines = { paid: new Set<Waiting>(), free: new Set<Waiting>() };
  const fits = (bytes: number): boolean => reserved === 0 || reserved + bytes <= atMost;
  const take = (bytes: number): (() => void) => {
    reserved += bytes;
    return () => {
      reserved -= bytes;
      serve();
    };
  };
  const serve = (): void => {
    for (const line of [lines.paid, lines.free])
      for (const next of line) {
        if (!fits(next.bytes)) return;
        line.delete(next);
        next.grant(take(next.bytes));
      }
  };
  return {
    reserve({ bytes, paid }) {
      const nobodyBefore = lines.paid.size === 0 && (paid || lines.free.size === 0);
      if (nobodyBefore && fits(bytes)) return Promise.resolve(take(bytes));
      return new Promise((resolve) => {
        const line = paid ? lines.paid : lines.free;
        const waiting: Waiting = {
          bytes,
          paid,
          grant(release) {
            clearTimeout(patience);
            resolve(release);
          },
        };
        const patience = setTimeout(
          () => {
            line.delete(waiting);
            resolve(undefined);
            // Who stood behind may fit where this one did not.
            serve();
          },
          paid ? PAID_WAIT_MS : FREE_WAIT_MS,
        );
        line.add(waiting);
      });
    },
    reserved: () => reserved,
    waiting: () => lines.paid.size + lines.free.size,
  };
}
