/**
 * A map of bounded size that forgets the key nobody used for the longest time: what strangers may make up keys for must not grow with
 * their number.
 */
export class RecentMap<V> {
  readonly #entries = new Map<string, V>();
  /** One walk for ever: whoever it comes to is forgotten, so it never leaves anybody behind, and never walks over the gaps of others. */
  readonly #oldest = this.#entries.keys();
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
}
