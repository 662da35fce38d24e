/** Frees sockets that slow readers of free answers keep, when other exchanges wait for one. */

import { LinkedList, type Place } from '../linked-list.ts';

/** A reader may always be this far behind, milliseconds: fast readers pause for moments too. */
export const HOLD_GRACE_MS = 250;
/** A reader that takes this much is not behind, bytes a millisecond: the pace of a slow line. */
export const FAIR_BYTES_A_MS = 256;

/**
 * How far behind the reader of one answer is: the time that it held the answer back, less a credit
 * for the bytes that it took.
 */
export class SlowReader {
  readonly giveUp: () => void;
  /** Its place in the list of `SlowReaders`. */
  place: Place<SlowReader> | undefined;
  #behindMs = 0;
  #taken = 0;
  #since: number | undefined;

  /** `giveUp` ends the exchange, and the next one in line gets its place. */
  constructor(giveUp: () => void) {
    this.giveUp = giveUp;
  }

  /** Notes that the answer waits for its reader from `now` on; `received`: its bytes so far. */
  hold(received: number, now: number): void {
    // Never below zero: bytes that the kernel's buffers took at first give no credit for later.
    this.#behindMs = Math.max(0, this.#behindMs - (received - this.#taken) / FAIR_BYTES_A_MS);
    this.#taken = received;
    this.#since = now;
  }

  release(now: number): void {
    this.#behindMs = this.behindMs(now);
    this.#since = undefined;
  }

  behindMs(now: number): number {
    return this.#behindMs + (this.#since === undefined ? 0 : now - this.#since);
  }
}

/**
 * The answers that wait for their readers. A reader that takes nothing keeps a socket to the
 * backend, and a few hundred of them would keep all: so when an exchange waits for a socket, the
 * answer whose reader is furthest behind is given up. While none waits, a reader may be as slow as
 * it likes.
 */
export class SlowReaders {
  readonly #held = new LinkedList<SlowReader>();
  readonly #wanted: () => boolean;
  #timer: NodeJS.Timeout | undefined;

  /** `wanted`: whether an exchange waits for a socket. */
  constructor(wanted: () => boolean) {
    this.#wanted = wanted;
  }

  /** Notes that the answer waits for its reader; `received`: its bytes so far. */
  hold(answer: SlowReader, received: number): void {
    answer.hold(received, performance.now());
    answer.place ??= this.#held.add(answer);
    this.relieve();
  }

  release(answer: SlowReader): void {
    if (this.#leave(answer)) answer.release(performance.now());
  }

  /** Gives up one answer for each waiting exchange, now or once a reader is too far behind. */
  relieve(): void {
    while (this.#wanted()) {
      const now = performance.now();
      const [last] = [...this.#held].map(({ member }) => member).sort((a, b) => b.behindMs(now) - a.behindMs(now));
      if (last === undefined) return;
      const leftMs = HOLD_GRACE_MS - last.behindMs(now);
      if (leftMs > 0) {
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined;
          this.relieve();
        }, Math.ceil(leftMs));
        return;
      }
      this.#leave(last);
      last.giveUp();
    }
  }

  #leave(answer: SlowReader): boolean {
    const { place } = answer;
    answer.place = undefined;
    return place !== undefined && this.#held.remove(place);
  }
}
