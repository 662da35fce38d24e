import type { Response } from 'express';
import type { EventEntry } from '../../events/event.ts';

/** How long a client waits before it connects again, milliseconds (contract 6). */
const RETRY_MS = 2_000;

/** What every stream begins with (specification 6). */
export const CONNECTED = comment('connected', `retry: ${RETRY_MS}\n\n`);
const HEARTBEAT = comment('heartbeat');
/** Events were dropped before the reader could have them. */
const GAP = comment('gap');
/** The last words of a process that ends: another one goes on. */
export const DRAINING = comment('draining');

/**
 * The frames of what can be read among the entries, in one piece; undefined for nothing. Unnamed,
 * so that they are messages.
 */
export function framesOf(entries: readonly EventEntry[]): Buffer | undefined {
  let frames = '';
  for (const { id, event } of entries)
    if (event !== undefined) frames += `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`;
  return frames === '' ? undefined : Buffer.from(frames);
}

function comment(text: string, more = ''): Buffer {
  return Buffer.from(`: ${text}\n\n${more}`);
}

/** Between two heartbeats, milliseconds (specification 8). */
export const HEARTBEAT_MS = 15_000;
/**
 * Bytes that may wait for one reader; with more he is cut, and resumes where he was (contract 6).
 */
const MAX_UNSENT_BYTES = 1_048_576;
/** How long a reader of old events may take none, milliseconds. */
export const STALLED_MS = 30_000;
/**
 * How long the last words may take to leave, milliseconds: nobody may hold up the end of the
 * process.
 */
const FAREWELL_MS = 500;
const NOTHING = Buffer.alloc(0);

/**
 * One who reads a stream. What he does not take in time ends his connection, never the events of
 * others.
 */
export class StreamReader {
  readonly #res: Response;
  readonly #onCut: () => void;

  /** `onCut`: told when this reader is too slow. */
  constructor(res: Response, onCut: () => void) {
    this.#res = res;
    this.#onCut = onCut;
    const heartbeat = setInterval(() => this.take(HEARTBEAT), HEARTBEAT_MS).unref();
    res.once('close', () => clearInterval(heartbeat));
  }

  /** Whether nothing can be said to this reader any more. */
  get gone(): boolean {
    return this.#res.closed || this.#res.destroyed || this.#res.writableEnded;
  }

  /** Hands bytes over without waiting; cuts a reader who has too much before him already. */
  take(bytes: Buffer): void {
    if (this.gone || !this.#res.headersSent) return;
    if (this.#res.writableLength > MAX_UNSENT_BYTES) this.#cut();
    else this.#res.write(bytes);
  }

  gap(): void {
    this.take(GAP);
  }

  /**
   * Hands bytes over and resolves when there is room for more, or the reader is gone. Cuts one who
   * takes nothing for 30 s.
   */
  send(bytes: Buffer): Promise<void> {
    if (this.gone || this.#res.write(bytes)) return Promise.resolve();
    return new Promise((resolve) => {
      const go = (): void => {
        clearTimeout(stalled);
        this.#res.off('drain', go).off('close', go);
        resolve();
      };
      const stalled = setTimeout(() => this.#cut(), STALLED_MS).unref();
      this.#res.on('drain', go).on('close', go);
    });
  }

  /**
   * Ends the stream at once, without waiting for a reader who has not taken what he was sent. One
   * whose head is not out yet is left to his route.
   */
  end(lastWords: Uint8Array = NOTHING): void {
    if (this.gone || !this.#res.headersSent) return;
    if (this.#res.writableLength > 0) {
      this.#res.destroy();
      return;
    }
    this.#res.end(lastWords);
    const late = setTimeout(() => this.#res.destroy(), FAREWELL_MS).unref();
    this.#res.once('close', () => clearTimeout(late));
  }

  #cut(): void {
    this.#onCut();
    this.#res.destroy();
  }
}
