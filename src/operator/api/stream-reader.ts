/** Writes frames of the event stream to one connection, and cuts a reader that is too slow. */

import type { Response } from 'express';
import type { EventEntry } from '../../events/event.ts';
import { onceClosed } from '../../server/http/once-closed.ts';

/** How long a client waits before it connects again, milliseconds (contract 6). */
const RETRY_MS = 2_000;

/** Between two heartbeats, milliseconds (specification 8). */
export const HEARTBEAT_MS = 15_000;
/** Bytes that may wait for one reader; with more it is cut, and may resume (contract 6). */
const MAX_UNSENT_BYTES = 1_048_576;
/** How long a reader of old events may take none, milliseconds. */
export const STALLED_MS = 30_000;
/** How long the last bytes may take, milliseconds: no reader may delay the end of the process. */
const END_TIMEOUT_MS = 500;
const NOTHING = Buffer.alloc(0);

/** What every stream begins with (specification 6). */
export const CONNECTED = comment('connected', `retry: ${RETRY_MS}\n\n`);
const HEARTBEAT = comment('heartbeat');
/** Events were dropped before they were sent to this reader. */
const GAP = comment('gap');
/** The process ends: the reader resumes at another one. */
export const DRAINING = comment('draining');

/** One connection that reads the stream. A slow one is cut, and does not delay the others. */
export class StreamReader {
  readonly #res: Response;
  readonly #onCut: () => void;

  /** `onCut`: called when this reader is cut. */
  constructor(res: Response, onCut: () => void) {
    this.#res = res;
    this.#onCut = onCut;
    const heartbeat = setInterval(() => this.take(HEARTBEAT), HEARTBEAT_MS).unref();
    onceClosed(res, () => clearInterval(heartbeat));
  }

  /** Whether nothing more can be sent. */
  get gone(): boolean {
    return this.#res.closed || this.#res.destroyed || this.#res.writableEnded;
  }

  /** Sends bytes without waiting; cuts a reader that has too many unsent ones. */
  take(bytes: Buffer): void {
    if (this.gone || !this.#res.headersSent) return;
    if (this.#res.writableLength > MAX_UNSENT_BYTES) this.#cut();
    else this.#res.write(bytes);
  }

  gap(): void {
    this.take(GAP);
  }

  /** Sends bytes; resolves when there is room for more. Cuts a reader that takes none for 30 s. */
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
   * Ends the stream, at once if bytes are still unsent. A response without a head is left to its
   * route.
   */
  end(last: Uint8Array = NOTHING): void {
    if (this.gone || !this.#res.headersSent) return;
    if (this.#res.writableLength > 0) {
      this.#res.destroy();
      return;
    }
    this.#res.end(last);
    const late = setTimeout(() => this.#res.destroy(), END_TIMEOUT_MS).unref();
    onceClosed(this.#res, () => clearTimeout(late));
  }

  #cut(): void {
    this.#onCut();
    this.#res.destroy();
  }
}

/** The frames of the readable entries, as unnamed messages; undefined without any. */
export function framesOf(entries: readonly EventEntry[]): Buffer | undefined {
  let frames = '';
  for (const { id, event } of entries)
    if (event !== undefined) frames += `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`;
  return frames === '' ? undefined : Buffer.from(frames);
}

function comment(text: string, more = ''): Buffer {
  return Buffer.from(`: ${text}\n\n${more}`);
}
