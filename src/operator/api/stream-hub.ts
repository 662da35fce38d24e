import { setTimeout as delay } from 'node:timers/promises';
import type { EventEntry, EventFeed, EventStretch, EventTail } from '../../events/event.ts';
import { BEGINNING, comparePositions } from '../../events/position.ts';
import { framesOf, type StreamReader } from './stream-reader.ts';

/** Entries of one read. */
export const READ_ENTRIES = 500;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** One time of following the ring, from its first reader to its last. */
interface Following {
  readonly tail: EventTail;
  /** Everything up to here was handed on. */
  position: string;
  /** Whether an entry was read there, so that it can only be missing when the ring lost it. */
  seen: boolean;
}

/**
 * Hands the events of all replicas to the readers of this process. However many they are, the ring
 * is followed once, and a frame is made once. Nobody follows while nobody reads.
 */
export class StreamHub {
  readonly #feed: EventFeed;
  readonly #onTrouble: (cause: unknown) => void;
  /**
   * Who takes live events; with the position up to which he has them already, when the hub is not
   * that far.
   */
  readonly #live = new Map<StreamReader, string | undefined>();
  #guests = 0;
  #opening: Promise<void> | undefined;
  #following: Following | undefined;
  #heardAt = 0;

  /** `onTrouble`: told once when the store begins to fail, not for every attempt. */
  constructor(feed: EventFeed, onTrouble: (cause: unknown) => void) {
    this.#feed = feed;
    this.#onTrouble = onTrouble;
  }

  /**
   * Follows the ring until as many have left as have entered. Rejects, and none has entered, when
   * the store does not answer.
   */
  async enter(): Promise<void> {
    this.#guests += 1;
    this.#opening ??= this.#open();
    const opening = this.#opening;
    try {
      await opening;
    } catch (thrown) {
      // Whoever comes next tries again; somebody may have done so already.
      if (this.#opening === opening) this.#opening = undefined;
      this.leave();
      throw thrown;
    }
  }

  leave(): void {
    this.#guests -= 1;
    if (this.#guests > 0) return;
    this.#opening = undefined;
    this.#following?.tail.close();
    this.#following = undefined;
  }

  /**
   * Hands live events to a reader who has everything up to `position`; without one, from now on.
   * False while the hub is further than he is: what lies between he has to read himself.
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

  /**
   * Milliseconds since the ring was last heard; 0 while nobody reads. More than the wait of a read
   * means that the store is away.
   */
  silentMs(): number {
    return this.#following === undefined ? 0 : performance.now() - this.#heardAt;
  }

  async #open(): Promise<void> {
    const position = await this.#feed.newest();
    const following = { tail: this.#feed.tail(), position, seen: false };
    this.#following = following;
    this.#heardAt = performance.now();
    void this.#follow(following);
  }

  /**
   * Reads on from the same position whatever happens, until the last reader left. Never rejects.
   */
  async #follow(following: Following): Promise<void> {
    let failures = 0;
    while (this.#following === following) {
      try {
        const stretch = await following.tail.read(following.position, READ_ENTRIES);
        // The last reader may have left meanwhile, and another one begun anew.
        if (this.#following !== following) return;
        await this.#handOn(following, stretch);
        this.#heardAt = performance.now();
        failures = 0;
      } catch (cause) {
        if (this.#following !== following) return;
        if (failures === 0) this.#onTrouble(cause);
        await delay(Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS), undefined, { ref: false });
        failures += 1;
      }
    }
  }

  async #handOn(following: Following, { entries, standing }: EventStretch): Promise<void> {
    const lost = standing === 'dropped' || standing === 'ahead' || (standing === 'unknown' && following.seen);
    const last = entries.at(-1);
    // A ring that lost its memory counts from below: whoever waited for a higher position would
    // never hear of anything again.
    const onward = lost && last === undefined ? await this.#feed.newest() : undefined;
    if (lost) for (const reader of this.#live.keys()) reader.gap();
    if (standing === 'ahead') for (const reader of this.#live.keys()) this.#live.set(reader, undefined);
    if (last !== undefined) {
      following.position = last.id;
      following.seen = true;
      this.#publish(entries);
    } else if (onward !== undefined) {
      following.position = onward;
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
