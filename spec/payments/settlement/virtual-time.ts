import type { Time } from '../../../src/time/time.ts';

/** A clock that stands until a test moves it. Milliseconds since it was made. */
export interface VirtualTime extends Time {
  /**
   * Moves on, waking every sleeper at its own moment and letting what it does come to rest before
   * the next one.
   */
  pass(ms: number): Promise<void>;
  /** How many sleep now. */
  sleepers(): number;
}

interface Sleeper {
  readonly until: number;
  readonly wake: () => void;
}

/**
 * Turns of the event loop in which a woken sleeper's own work, an embedded store included, comes to
 * rest.
 */
const TURNS = 12;

export function virtualTime(): VirtualTime {
  let now = 0;
  let sleeping: Sleeper[] = [];
  return {
    now: () => now,
    sleep: (ms) => new Promise((wake) => sleeping.push({ until: now + ms, wake })),
    sleepers: () => sleeping.length,
    async pass(ms) {
      const end = now + ms;
      await rest();
      for (;;) {
        const next = Math.min(...sleeping.map(({ until }) => until));
        if (next > end) break;
        now = Math.max(now, next);
        const woken = sleeping.filter(({ until }) => until <= now);
        sleeping = sleeping.filter(({ until }) => until > now);
        for (const { wake } of woken) wake();
        await rest();
      }
      now = end;
    },
  };
}

/** Lets everything that waits for nothing but the event loop go on. */
export async function rest(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Time without waiting: every sleep is over at once, and is counted. */
export function skippedTime(): Time & { readonly slept: readonly number[] } {
  const slept: number[] = [];
  return {
    slept,
    now: () => slept.reduce((sum, ms) => sum + ms, 0),
    sleep: async (ms) => void slept.push(ms),
  };
}
