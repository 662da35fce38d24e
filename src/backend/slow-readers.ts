/**
 * How far behind a reader may be whatever happens, milliseconds: a fast one holds its answer back
 * too, for a moment at a time.
 */
export const HOLD_GRACE_MS = 250;
/**
 * A reader who takes this much is not behind, bytes a millisecond: a slow line, and more than one
 * slow client is worth a socket.
 */
export const FAIR_BYTES_A_MS = 256;

/**
 * How far behind the reader of one answer is: the time he held it back, less the time that what he
 * took is worth.
 */
export class SlowReader {
  readonly giveUp: () => void;
  #behindMs = 0;
  #taken = 0;
  #since: number | undefined;

  /** `giveUp` ends the exchange, which gives its socket to the next in line. */
  constructor(giveUp: () => void) {
    this.giveUp = giveUp;
  }

  /** The answer waits for its reader from `now` on, after so many bytes in all. */
  hold(received: number, now: number): void {
    // Never less than nothing: what the kernel's buffers took at first must not be a credit for
    // standing still later.
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
 * The answers that wait for their readers. A reader who takes nothing keeps a socket to the
 * merchant, and a few hundred of them would keep all: so when somebody waits for a socket, the
 * answer whose reader is furthest behind is given up. While nobody waits, a slow line may be as
 * slow as it likes.
 */
export class SlowReaders {
  readonly #held = new Set<SlowReader>();
  readonly #wanted: () => boolean;
  #timer: NodeJS.Timeout | undefined;

  /** `wanted`: whether somebody waits for a socket. */
  constructor(wanted: () => boolean) {
    this.#wanted = wanted;
  }

  /** See `HeldBack`. */
  hold(answer: SlowReader, received: number): void {
    answer.hold(received, performance.now());
    this.#held.add(answer);
    this.relieve();
  }

  release(answer: SlowReader): void {
    if (this.#held.delete(answer)) answer.release(performance.now());
  }

  /** Gives up as many as are waited for, now or as soon as one is too far behind. */
  relieve(): void {
    while (this.#wanted()) {
      const now = performance.now();
      const [last] = [...this.#held].sort((a, b) => b.behindMs(now) - a.behindMs(now));
      if (last === undefined) return;
      const leftMs = HOLD_GRACE_MS - last.behindMs(now);
      if (leftMs > 0) {
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined;
          this.relieve();
        }, Math.ceil(leftMs));
        return;
      }
      this.#held.delete(last);
      last.giveUp();
    }
  }
}
