/**
 * Holds calls that need the backend while its container restarts alone (contract 3, shutdown): no
 * money moves for a call that a backend which is about to end would have to answer.
 */

/** How long a call is held, milliseconds: a container that restarts usually takes less. */
export const HELD_MS = 2_000;
/** Calls that are held at the same time; further ones are refused at once. */
export const MOST_HELD = 512;

/**
 * `raised`: new calls are held, and the backend stays for those that run. `released`: it may end at
 * any moment.
 */
type FenceState = 'down' | 'raised' | 'released';

export type Fence = ReturnType<typeof createFence>;

export function createFence() {
  let state: FenceState = 'down';
  const held = new Set<(passes: boolean) => void>();
  const count = { wentOn: 0, refused: 0 };

  const hold = (): Promise<boolean> =>
    new Promise((resolve) => {
      const end = (passes: boolean): void => {
        clearTimeout(timer);
        held.delete(end);
        count[passes ? 'wentOn' : 'refused'] += 1;
        resolve(passes);
      };
      const timer = setTimeout(() => end(false), HELD_MS);
      held.add(end);
    });
  return {
    state: () => state,
    /** Whether a call has to `pass`. */
    up: () => state !== 'down',
    /** Whether the backend stays long enough for what is paid now: part of the settlement gate. */
    backendStays: () => state !== 'released',
    /** Resolves to true when the fence is down, to false when the call was held for too long. */
    async pass(): Promise<boolean> {
      if (state === 'down') return true;
      if (held.size < MOST_HELD) return hold();
      count.refused += 1;
      return false;
    },
    raise(): void {
      if (state === 'down') state = 'raised';
    },
    release(): void {
      state = 'released';
    },
    /** Lets all calls go on. */
    lower(): void {
      state = 'down';
      for (const end of held) end(true);
    },
    /** Calls that are held now, and how those before them ended. */
    facts: () => ({ held: held.size, ...count }),
  };
}
