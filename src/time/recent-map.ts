/**
 * A map of bounded size that forgets the key nobody used for the longest time: what strangers may
 * make up keys for must not grow with their number.
 */
export class RecentMap<V> {
  readonly #entries = new Map<string, V>();
  /**
   * One walk: whoever it comes to is forgotten, so it never leaves anybody behind, and never walks
   * over the gaps of others.
   */
  #oldest = this.#entries.keys();
  /** Uses since the walk began. */
  #uses = 0;
  readonly #maxKeys: number;

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The value of a key, which counts as used now. */
  use(key: string): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    // A Map keeps the order of insertion: whoever was used last stands last.
    this.#entries.delete(key);
    this.#entries.set(key, value);
    this.#uses += 1;
    if (this.#uses >= this.#maxKeys) this.#beginAnew();
    return value;
  }

  /** Adds a key that is not there yet. */
  add(key: string, value: V): void {
    if (this.#entries.size >= this.#maxKeys) {
      const oldest = this.#oldest.next();
      if (oldest.done !== true) this.#entries.delete(oldest.value);
    }
    this.#entries.set(key, value);
  }
  /**
   * A Map that is used makes itself new again and again, and a walk that stands still keeps all of
   * its earlier selves alive.
   */
  #beginAnew(): void {
    this.#oldest = this.#entries.keys();
    this.#uses = 0;
  }
}
