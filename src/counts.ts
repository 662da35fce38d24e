/** How many of a thing each of many names has; a name that has none takes no memory. */
export class Counts {
  readonly #counts = new Map<string, number>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  add(names: Iterable<string>, by: 1 | -1): void {
    for (const name of names) {
      const next = this.of(name) + by;
      if (next > 0) this.#counts.set(name, next);
      else this.#counts.delete(name);
    }
  }
}
