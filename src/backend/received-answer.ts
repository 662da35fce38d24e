/** An answer of the backend as it arrives: whole where it is short, else a stream of its body. */

import { Readable } from 'node:stream';
import type { BackendAnswer, BackendError, ReceivedHeaders } from './exchange.ts';

/** How much of an answer waits for its reader before the backend is asked to wait, bytes. */
export const ANSWER_BUFFER_BYTES = 65_536;

/** Where an answer's bytes come from. */
export interface BodySource {
  /** The reader has room again. */
  resume(): void;
  /** The reader destroyed the body and wants no more of it. */
  abandon(): void;
}

const EMPTY = Buffer.alloc(0);

/**
 * An answer of which the head is there. Its bytes are kept until the body is asked for, so that an
 * answer which is there as a whole by then needs no stream: most come in one read with their head.
 */
export class ReceivedAnswer implements BackendAnswer {
  readonly status: number;
  readonly headers: ReceivedHeaders;
  readonly #source: BodySource;
  /** What came before the body was asked for. */
  #chunks: Buffer[] = [];
  #size = 0;
  #ended = false;
  #failure: BackendError | undefined;
  #body: AnswerBody | undefined;

  constructor(status: number, headers: ReceivedHeaders, source: BodySource) {
    this.status = status;
    this.headers = headers;
    this.#source = source;
  }

  get whole(): Buffer | undefined {
    if (!this.#ended || this.#body !== undefined || this.#size > ANSWER_BUFFER_BYTES) return undefined;
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0] ?? EMPTY;
  }

  get body(): Readable {
    if (this.#body !== undefined) return this.#body;
    const body = new AnswerBody(this.#source);
    this.#body = body;
    for (const chunk of this.#chunks) body.accept(chunk);
    this.#chunks.length = 0;
    if (this.#ended) body.complete();
    else if (this.#failure !== undefined) body.fail(this.#failure);
    return body;
  }

  /** Takes a chunk. False: no more until the source is asked to resume. */
  accept(chunk: Buffer): boolean {
    if (this.#body !== undefined) return this.#body.accept(chunk);
    this.#size += chunk.length;
    this.#chunks.push(chunk);
    return this.#size < ANSWER_BUFFER_BYTES;
  }

  complete(): void {
    this.#ended = true;
    this.#body?.complete();
  }

  fail(error: BackendError): void {
    this.#failure = error;
    this.#body?.fail(error);
  }
}

/**
 * The body of an answer, with backpressure. A failure that comes before there is a listener for
 * errors is kept until the body is read: the head is handed over asynchronously, and an answer may
 * break off before its reader exists.
 */
class AnswerBody extends Readable {
  readonly #source: BodySource;
  #failure: BackendError | undefined;

  constructor(source: BodySource) {
    super({ highWaterMark: ANSWER_BUFFER_BYTES });
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
    // Not null: there is a reader, this is not the stream that fills its own buffer.
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
