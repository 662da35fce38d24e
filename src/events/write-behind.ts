/** A bounded queue that carries events and receipts of free calls to the store in batches. */

import { randomUUID } from 'node:crypto';
import type { EventBatch } from './event.ts';

/** Longest wait of an entry until its batch is sent, milliseconds (contract 6). */
const BATCH_DELAY_MS = 25;
/** Entries in one batch, unless its queue has a size of its own. */
const BATCH_SIZE = 100;
/** Entries that a transition carries in its own write at most. */
const WITHDRAWN_AT_ONCE = 100;
/** Entries that wait while the store is away; above it the oldest are dropped. */
const MAX_WAITING = 10_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

interface Entry {
  readonly requestId: string;
}

/** Writes one batch. A repeated one must change nothing: `batch` tells it, or the write upserts. */
type WriteBatch<T> = (entries: readonly T[], batch: EventBatch) => Promise<void>;

export interface WriteBehind<T extends Entry> {
  /** Never waits and never throws. */
  push(entry: T): void;
  /**
   * Takes back the entries of one request that wait, oldest first, so that a transition can carry
   * them in its own write. At most 100: a caller can make many calls under one request id.
   */
  withdraw(requestId: string): readonly T[];
  /** Sends the entries that wait in the turn of the event loop in which another queue sends. */
  join(): void;
  /** Sends the entries that wait now. If the store fails, they go on waiting. Never throws. */
  flush(): Promise<void>;
  /** Sends the entries that wait, one attempt a batch, and stops. Unsent ones count as dropped. */
  close(): Promise<void>;
  /** Entries lost so far. */
  dropped(): number;
  /** Entries that are not confirmed yet. */
  waiting(): number;
}

export interface WriteBehindOptions {
  /** Called once when the store begins to fail, not for every attempt. */
  readonly onError?: (cause: unknown) => void;
  /** Called at every loss: how many entries, and how many in all. */
  readonly onDrop?: (entries: number, inAll: number) => void;
  /** Called when a batch leaves because its time has come or because it is full. */
  readonly onSending?: () => void;
  readonly delayMs?: number;
  readonly batchSize?: number;
  readonly firstPauseMs?: number;
}

/** Sends batches after 25 ms or when full, in order; repeats a failed one unchanged, ever later. */
export function createWriteBehind<T extends Entry>(
  write: WriteBatch<T>,
  options: WriteBehindOptions = {},
): WriteBehind<T> {
  return new Queue(write, options);
}

class Queue<T extends Entry> implements WriteBehind<T> {
  readonly #write: WriteBatch<T>;
  readonly #onError: (cause: unknown) => void;
  readonly #onDrop: (entries: number, inAll: number) => void;
  readonly #onSending: () => void;
  readonly #delayMs: number;
  readonly #batchSize: number;
  readonly #firstPauseMs: number;
  readonly #name = randomUUID();
  #waiting: T[] = [];
  /** Taken from `#waiting` and not yet confirmed: repeated unchanged, under the same number. */
  #batch: readonly T[] = [];
  #sequence = 0;
  #failures = 0;
  #dropped = 0;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<boolean> | undefined;

  constructor(write: WriteBatch<T>, options: WriteBehindOptions) {
    this.#write = write;
    this.#onError = options.onError ?? (() => undefined);
    this.#onDrop = options.onDrop ?? (() => undefined);
    this.#onSending = options.onSending ?? (() => undefined);
    this.#delayMs = options.delayMs ?? BATCH_DELAY_MS;
    this.#batchSize = options.batchSize ?? BATCH_SIZE;
    this.#firstPauseMs = options.firstPauseMs ?? FIRST_PAUSE_MS;
  }

  push(entry: T): void {
    if (this.#closed) {
      this.#drop(1);
      return;
    }
    this.#waiting.push(entry);
    if (this.#waiting.length + this.#batch.length > MAX_WAITING) {
      this.#waiting.shift();
      this.#drop(1);
    }
    if (this.#failures > 0 || this.#sending !== undefined) return;
    if (this.#waiting.length >= this.#batchSize) this.#schedule(0);
    else if (this.#timer === undefined) this.#schedule(this.#delayMs);
  }

  withdraw(requestId: string): readonly T[] {
    const withdrawn = this.#waiting.filter((entry) => entry.requestId === requestId).slice(0, WITHDRAWN_AT_ONCE);
    const taken = new Set(withdrawn);
    if (taken.size > 0) this.#waiting = this.#waiting.filter((entry) => !taken.has(entry));
    return withdrawn;
  }

  join(): void {
    // A queue whose store fails goes by its own pauses, and one that sends goes on by itself.
    if (this.#failures > 0 || this.#sending !== undefined || this.#left() === 0) return;
    this.#unschedule();
    void this.#send();
  }

  async flush(): Promise<void> {
    this.#unschedule();
    await this.#sending;
    // One round more than full batches: the batch that is repeated may be a small one.
    for (let batches = Math.ceil(this.#left() / this.#batchSize) + 1; batches > 0 && this.#left() > 0; batches -= 1)
      if (!(await this.#send())) return;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.flush();
    this.#unschedule();
    this.#drop(this.#left());
    this.#waiting = [];
    this.#batch = [];
  }

  dropped(): number {
    return this.#dropped;
  }

  waiting(): number {
    return this.#left();
  }

  #drop(entries: number): void {
    if (entries === 0) return;
    this.#dropped += entries;
    this.#onDrop(entries, this.#dropped);
  }

  #left(): number {
    return this.#batch.length + this.#waiting.length;
  }

  /** One batch at a time keeps the order; a second caller shares the one that is being sent. */
  #send(): Promise<boolean> {
    this.#sending ??= this.#attempt().finally(() => {
      this.#sending = undefined;
      if (!this.#closed && this.#left() > 0) this.#schedule(this.#pauseMs());
    });
    return this.#sending;
  }

  async #attempt(): Promise<boolean> {
    if (this.#batch.length === 0) {
      this.#batch = this.#waiting.splice(0, this.#batchSize);
      this.#sequence += 1;
    }
    try {
      await this.#write(this.#batch, { queue: this.#name, sequence: this.#sequence });
      this.#batch = [];
      this.#failures = 0;
      return true;
    } catch (cause) {
      if (this.#failures === 0) this.#onError(cause);
      this.#failures += 1;
      return false;
    }
  }

  #pauseMs(): number {
    if (this.#failures === 0) return this.#waiting.length >= this.#batchSize ? 0 : this.#delayMs;
    return Math.min(this.#firstPauseMs * 2 ** (this.#failures - 1), LONGEST_PAUSE_MS);
  }

  #schedule(ms: number): void {
    this.#unschedule();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#left() === 0) return;
      void this.#send();
      this.#onSending();
    }, ms);
    // The timer must not keep the process alive: `close` sends what waits.
    this.#timer.unref();
  }

  #unschedule(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
