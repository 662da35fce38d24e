/** Remembers when something last happened, for a bounded number of names. */

/** The name that was noted the longest time ago is forgotten first. */
export function createLatestTimes(most: number) {
  const times = new Map<string, number>();
  return {
    note(name: string, at: number): void {
      // Deleted first, so that the map stays in the order of time.
      times.delete(name);
      times.set(name, at);
      if (times.size <= most) return;
      const [oldest] = times.keys();
      if (oldest !== undefined) times.delete(oldest);
    },
    at: (name: string) => times.get(name),
    forget: (name: string) => void times.delete(name),
  };
}
