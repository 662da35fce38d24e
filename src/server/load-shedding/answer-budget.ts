/** Bounds the memory for answers that MCP and A2A put into a message as a whole. */

/** How long an answer of a free call waits for memory before its call is refused, milliseconds. */
export const FREE_WAIT_MS = 2_000;
/** The same for a paid call: a third of the time that a reader may hold a backend back. */
export const PAID_WAIT_MS = 20_000;

interface AnswerSize {
  readonly bytes: number;
  /** Paid answers go first, and wait longer. */
  readonly paid: boolean;
}

interface Waiting extends AnswerSize {
  readonly grant: (release: () => void) => void;
}

/**
 * The memory of the process for answers that an adapter must hold as a whole. Each answer reserves
 * all its memory once, before its bytes are read, and never more while it holds some, so no two can
 * wait for each other. First come first served, paid before free. A smaller answer does not
 * overtake the next one, or a large one would never get its turn.
 */
export interface AnswerBudget {
  /** Resolves with what gives the memory back, once; with undefined if none was free in time. */
  reserve(answer: AnswerSize): Promise<(() => void) | undefined>;
  /** Bytes that are reserved. */
  reserved(): number;
  waiting(): number;
}

/**
 * `atMost`: bytes at the same time; a function is asked for each answer. A larger answer gets all
 * of it, alone.
 */
export function createAnswerBudget(atMost: number | (() => number)): AnswerBudget {
  const bound = typeof atMost === 'number' ? () => atMost : atMost;
  let reserved = 0;
  const queues = { paid: new Set<Waiting>(), free: new Set<Waiting>() };
  const fits = (bytes: number): boolean => reserved === 0 || reserved + bytes <= bound();
  const take = (bytes: number): (() => void) => {
    reserved += bytes;
    return () => {
      reserved -= bytes;
      serve();
    };
  };
  const serve = (): void => {
    for (const queue of [queues.paid, queues.free])
      for (const next of queue) {
        if (!fits(next.bytes)) return;
        queue.delete(next);
        next.grant(take(next.bytes));
      }
  };
  return {
    reserve({ bytes, paid }) {
      const isFirst = queues.paid.size === 0 && (paid || queues.free.size === 0);
      if (isFirst && fits(bytes)) return Promise.resolve(take(bytes));
      return new Promise((resolve) => {
        const queue = paid ? queues.paid : queues.free;
        const waiting: Waiting = {
          bytes,
          paid,
          grant(release) {
            clearTimeout(timer);
            resolve(release);
          },
        };
        const timer = setTimeout(
          () => {
            queue.delete(waiting);
            resolve(undefined);
            // The next one may fit where this one did not.
            serve();
          },
          paid ? PAID_WAIT_MS : FREE_WAIT_MS,
        );
        queue.add(waiting);
      });
    },
    reserved: () => reserved,
    waiting: () => queues.paid.size + queues.free.size,
  };
}
