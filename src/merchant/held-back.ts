/** So long a reader may hold an answer back whatever happens, milliseconds: a fast one does it too, for a moment at a time. */
export const HOLD_GRACE_MS = 250;

/** An exchange whose answer waits for its reader. */
interface HeldBack {
  /** Ends it, which gives its socket to the next in line. */
  fail(reason: 'timeout'): void;
}

/**
 * The exchanges that wait for their readers, the longest first. A reader who takes nothing keeps a socket to the merchant, and a few
 * hundred of them would keep all: so when somebody waits for a socket, the one held back the longest is given up. While nobody waits,
 * a slow line may be as slow as it likes.
 */
export class HeldBackExchanges {
  /** With the time since which they are held, milliseconds of the monotonic clock. */
  readonly #since = new Map<HeldBack, number>();
  readonly #wanted: () => boolean;
  #timer: NodeJS.Timeout | undefined;

  /** `wanted`: whether somebody waits for a socket. */
  constructor(wanted: () => boolean) {
    this.#wanted = wanted;
  }

  held(exchange: HeldBack): void {
    this.#since.set(exchange, performance.now());
    this.relieve();
  }

  released(exchange: HeldBack): void {
    this.#since.delete(exchange);
  }

  /** Gives up as many as are waited for, now or as soon as their grace is over. */
  relieve(): void {
    for (const [exchange, since] of this.#since) {
      if (!this.#wanted()) return;
      const left = since + HOLD_GRACE_MS - performance.now();
      if (left > 0) {
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined;
          this.relieve();
        }, Math.ceil(left));
        return;
      }
      this.#since.delete(exchange);
      exchange.fail('timeout');
    }
  }
}
