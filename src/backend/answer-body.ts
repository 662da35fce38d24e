import { Readable } from 'node:stream';
import type { BackendError } from './types.ts';

/** How much of an answer waits here for a slow reader before the merchant is asked to wait, bytes. */
const BODY_BUFFER_BYTES = 65_536;

/** Where an answer's bytes come from. */
interface BodySource {
  /** The reader has room again. */
  resume(): void;
  /** The reader destroyed the body: nobody wants the rest. */
  abandon(): void;
}

/**
 * The body of an answer, with backpressure. A failure that comes before anybody listens for errors is kept until the body is
 * read: the head is handed over asynchronously, and an answer may break off before its reader exists.
 */
export class AnswerBody extends Readable {
  readonly #source: BodySource;
  #failure: BackendError | undefined;

  constructor(source: BodySource) {
    super({ highWaterMark: BODY_BUFFER_BYTES });
    this.#source = source;
  }

  /** Takes a chunk. False: no more until `resume`. */
  accept(chunk: Buffer): boolean {
    return this.push(chunk);
  }

  complete(): void {
    this.push(null);
  }

  fail(error: BackendError): void {
    if (this.listenerCount('error') > 0) this.destroy(error);
    else this.#failure = error;
  }

  override read(size?: number): unknown {
    // Not null: a reader has come, this is not the stream filling its own buffer.
    if (this.#failure !== undefined && this.readableFlowing !== null && this.readableLength === 0)
      this.destroy(this.#failure);
    return super.read(size);
  }

  override _read(): void {
    this.#source.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#source.abandon();
    callback(error);
  }
}
