/** Follows the ring of events once for all event streams of this process. */

import { setTimeout as delay } from 'node:timers/promises';
import type { EventEntry, EventFeed, EventStretch, EventTail } from '../../events/event.ts';
import { BEGINNING, comparePositions } from '../../events/page.ts';
import { framesOf, type StreamReader } from './stream-reader.ts';

/** Entries of one read. */
export const READ_ENTRIES = 500;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** The state while the hub follows the ring, from its first reader to its last. */
interface Following {
  readonly tail: EventTail;
  /** Everything up to here was sent to the live readers. */
  position: string;
  /** Whether an entry was read at `position`: then only a loss of the ring can remove it. */
  seen: boolean;
}

/**
 * Sends the events of all replicas to the readers of this process. The ring is followed once and a
 * frame is made once, however many readers there are. Without readers the ring is not followed.
 */
export class StreamHub {
  readonly #feed: EventFeed;
  readonly #onTrouble: (cause: unknown) => void;
  /** Readers of live events; with a position if the reader has events beyond the hub's position. */
  readonly #live = new Map<StreamReader, string | undefined>();
  #entered = 0;
  #opening: Promise<void> | undefined;
  #following: Following | undefined;
  #answeredAt = 0;

  /** `onTrouble`: called once when the store begins to fail, not for every attempt. */
  constructor(feed: EventFeed, onTrouble: (cause: unknown) => void) {
    this.#feed = feed;
    this.#onTrouble = onTrouble;
  }

  /**
   * Makes the hub follow the ring until each `enter` has its `leave`. Rejects, without having
   * entered, when the store does not answer.
   */
  async enter(): Promise<void> {
    this.#entered += 1;
    this.#opening ??= this.#open();
    const opening = this.#opening;
    try {
      await opening;
    } catch (thrown) {
      // The next caller tries again; another one may have done so already.
      if (this.#opening === opening) this.#opening = undefined;
      this.leave();
      throw thrown;
    }
  }

  leave(): void {
    this.#entered -= 1;
    if (this.#entered > 0) return;
    this.#opening = undefined;
    this.#following?.tail.close();
    this.#following = undefined;
  }

  /**
   * Sends live events to a reader that has everything up to `position`; without one, from now on.
   * False when the hub is beyond `position`: the reader must read the entries between first.
   */
  join(reader: StreamReader, position?: string): boolean {
    const at = this.#following?.position ?? BEGINNING;
    const ahead = position === undefined ? 0 : comparePositions(position, at);
    if (ahead < 0) return false;
    this.#live.set(reader, ahead === 0 ? undefined : position);
    return true;
  }

  part(reader: StreamReader): void {
    this.#live.delete(reader);
  }

  /** Milliseconds since the last answer of the ring; 0 without readers. */
  silentMs(): number {
    return this.#following === undefined ? 0 : performance.now() - this.#answeredAt;
  }

  async #open(): Promise<void> {
    const position = await this.#feed.newest();
    const following = { tail: this.#feed.tail(), position, seen: false };
    this.#following = following;
    this.#answeredAt = performance.now();
    void this.#follow(following);
  }

  /** Reads until the last reader left; after a failure from the same position. Never rejects. */
  async #follow(following: Following): Promise<void> {
    let failures = 0;
    while (this.#following === following) {
      try {
        const stretch = await following.tail.read(following.position, READ_ENTRIES);
        // The last reader may have left meanwhile, and a new one may have begun another following.
        if (this.#following !== following) return;
        await this.#send(following, stretch);
        this.#answeredAt = performance.now();
        failures = 0;
      } catch (cause) {
        if (this.#following !== following) return;
        if (failures === 0) this.#onTrouble(cause);
        await delay(Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS), undefined, { ref: false });
        failures += 1;
      }
    }
  }

  async #send(following: Following, { entries, standing }: EventStretch): Promise<void> {
    const lost = standing === 'dropped' || standing === 'ahead' || (standing === 'unknown' && following.seen);
    const last = entries.at(-1);
    // A ring that lost its data has lower positions: a reader that waited for a higher one would
    // never get an event again.
    const restart = lost && last === undefined ? await this.#feed.newest() : undefined;
    if (lost) for (const reader of this.#live.keys()) reader.gap();
    if (standing === 'ahead') for (const reader of this.#live.keys()) this.#live.set(reader, undefined);
    if (last !== undefined) {
      following.position = last.id;
      following.seen = true;
      this.#publish(entries);
    } else if (restart !== undefined) {
      following.position = restart;
      following.seen = false;
    }
  }

  #publish(entries: readonly EventEntry[]): void {
    let frames: Buffer | undefined;
    for (const [reader, known] of this.#live) {
      if (known === undefined) {
        frames ??= framesOf(entries);
        if (frames !== undefined) reader.take(frames);
        continue;
      }
      const unknown = entries.filter(({ id }) => comparePositions(id, known) > 0);
      if (unknown.length === 0) continue;
      this.#live.set(reader, undefined);
      const rest = framesOf(unknown);
      if (rest !== undefined) reader.take(rest);
    }
  }
}
