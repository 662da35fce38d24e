/**
 * A map of bounded size that drops the key that was not used for the longest time: callers may
 * invent keys, and memory must not grow with their number. Rate limits and caches use it.
 */
export class RecentMap<V> {
  readonly #entries = new Map<string, V>();
  /** One walk over the keys: it drops each one that it reaches, so it passes no gaps. */
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
    // A Map keeps the order of insertion: the key that was used last is last.
    this.#entries.delete(key);
    this.#entries.set(key, value);
    this.#uses += 1;
    if (this.#uses >= this.#maxKeys) this.#restartWalk();
    return value;
  }

  /** Adds a key that is not there yet, or changes the value of one, which counts as used now. */
  add(key: string, value: V): void {
    if (this.use(key) === undefined && this.#entries.size >= this.#maxKeys) {
      const oldest = this.#oldest.next();
      if (oldest.done !== true) this.#entries.delete(oldest.value);
    }
    this.#entries.set(key, value);
  }

  /** A used Map rebuilds its table, and a walk that does not move keeps all old tables alive. */
  #restartWalk(): void {
    this.#oldest = this.#entries.keys();
    this.#uses = 0;
  }
}
