/** Remembers when something last happened, for a bounded number of names. */

interface LatestTimes {
  note(name: string, at: number): void;
  at(name: string): number | undefined;
  forget(name: string): void;
}

/** The name that was noted the longest time ago is forgotten first. */
export function createLatestTimes(most: number): LatestTimes {
  const times = new Map<string, number>();
  return {
    note(name, at) {
      // Deleted first, so that the map stays in the order of time.
      times.delete(name);
      times.set(name, at);
      if (times.size <= most) return;
      const [oldest] = times.keys();
      if (oldest !== undefined) times.delete(oldest);
    },
    at: (name) => times.get(name),
    forget: (name) => void times.delete(name),
  };
}
