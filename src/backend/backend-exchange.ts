/**
 * One exchange with the backend as a state machine, from the wait for a socket to its end: the
 * types of its callers, its deadline, and its answer as it arrives.
 */

import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Admitted, Limiter } from '../limiter.ts';
import { type Health, Unanswered } from './circuit-breaker.ts';
import { type Connection, type ConnectionPool, SocketUser } from './connection-pool.ts';
import { SlowReader, type SlowReaders } from './slow-readers.ts';

/** A request to the backend, complete before the call is priced. `path`: from `/`, with query. */
export interface BackendRequest {
  readonly method: 'GET' | 'DELETE' | 'POST' | 'PUT' | 'PATCH';
  readonly path: string;
  /** Lower-case names, from allow-lists only. The exchange sets `host` and `content-length`. */
  readonly headers: Readonly<Record<string, string>>;
  /** Allowed headers that the caller sent, a part of the purchase. Mostly absent. */
  readonly callerHeaders?: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
}

/** A payment of a call, as the circuit breaker counts it; each record of the ledger is one. */
export interface Sale {
  readonly payId: string;
  readonly payer: string;
  readonly resourceId: string;
  /** The backend works before the money moves, so a call that it does not answer costs nothing. */
  readonly settle?: 'after';
}

/** Bounds of one exchange. */
export interface ExchangeLimits {
  /** From connect to last byte, milliseconds, without the time that the reader holds it back. */
  readonly timeoutMs: number;
  /** Largest answer body, bytes. */
  readonly maxResponseBytes: number;
  /** How long the reader may hold the answer back, in all, milliseconds; 60,000 unless given. */
  readonly readerHoldMs?: number;
  /** Ends the exchange early (a free call whose client left). */
  readonly signal?: Cancellation;
  /** The payment whose money has moved for it; absent where none has. */
  readonly sale?: Sale;
}

/** A signal that ends work early: an AbortSignal, or a cheaper object with these members. */
export interface Cancellation {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** Header fields as received: lower-case names, a repeated field as an array in order. */
export type ReceivedHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** An answer, head first. `body` fails with a BackendError if it breaks, is late or too large. */
export interface BackendAnswer {
  readonly status: number;
  /** Nothing of this is relayed without the allow-list of `relayedHeaders`. */
  readonly headers: ReceivedHeaders;
  readonly body: Readable;
  /**
   * All bytes of the body (at most 64 KiB), once they have arrived and while `body` was never asked
   * for: no failure can follow.
   */
  readonly whole?: Uint8Array | undefined;
}

/** Sends one request to the backend. Rejects with BackendError only. */
export type Exchange = (request: BackendRequest, limits: ExchangeLimits) => Promise<BackendAnswer>;

/** An open connection, kept for one call. Either `exchange` or `release` is called, once. */
export interface HeldConnection {
  /**
   * As `Exchange`; while nothing was written it connects again and again until the deadline,
   * whatever the method.
   */
  readonly exchange: Exchange;
  /** Gives back the connection unused. */
  release(): void;
}

/** Opens a connection for one call. Undefined: the backend cannot be reached now. Never rejects. */
export type ReserveBackend = (sale: Sale) => Promise<HeldConnection | undefined>;

/**
 * Why no usable answer came: `unreachable` no connection (see `requestWritten`), `timeout` the
 * total deadline passed, `transport` the connection broke or the bytes were no HTTP (also 101),
 * `response_too_large` above the cap, `aborted` by the signal.
 */
export type BackendFailure = 'unreachable' | 'timeout' | 'transport' | 'response_too_large' | 'aborted';

export const TOO_LARGE: BackendFailure = 'response_too_large';

/** Translates a reason to the words of contract 1.2, which name `unreachable` `transport`. */
export function wireReason<Reason extends string>(reason: Reason): Exclude<Reason, 'unreachable'> | 'transport' {
  return reason === 'unreachable' ? 'transport' : (reason as Exclude<Reason, 'unreachable'>);
}

export class BackendError extends Error {
  readonly reason: BackendFailure;
  /** False: certainly no byte of the request reached the backend; any method may be sent again. */
  readonly requestWritten: boolean;
  /** The status of an answer that was refused for the length it declares. */
  readonly status: number | undefined;

  constructor(reason: BackendFailure, requestWritten: boolean, cause?: unknown, status?: number) {
    super(`backend ${reason}`, cause === undefined ? undefined : { cause });
    this.name = 'BackendError';
    this.reason = reason;
    this.requestWritten = requestWritten;
    this.status = status;
  }
}

/** 4xx statuses of a resource whose answers reach the agent as they are. */
export interface RelayStatuses {
  /** Delivered: where there is a price, they are paid for. */
  readonly sold: readonly number[];
  /** Of a call that is settled after its answer: relayed, and no payment is taken. */
  readonly unpaid: readonly number[];
}

export const NONE_RELAYED: RelayStatuses = { sold: [], unpaid: [] };

/**
 * The meaning of a final status of the backend for the caller. `deliver`: the answer was bought or
 * asked for. `redirect`: never followed and never relayed, its Location can name an internal
 * host. `fail`: the backend did not deliver.
 */
type StatusOutcome = 'deliver' | 'redirect' | 'fail';

/** Names the failure of a call by its reason (`reset` for `transport`), or else by its status. */
export function failureCode({ status, reason }: { readonly status: number; readonly reason?: string }): string {
  return reason === undefined ? `backend_status_${status}` : reason === 'transport' ? 'reset' : reason;
}

/** Why the backend did not deliver, for the log: the caller learns less. */
export class Undeliverable extends Error {
  readonly code: string;
  /** Method and path template. */
  readonly operation: string;

  constructor(code: string, { method, path }: { readonly method: string; readonly path: string }, cause?: unknown) {
    super(`${method} ${path} of the backend failed: ${code}`, { cause });
    this.name = 'Undeliverable';
    this.code = code;
    this.operation = `${method} ${path}`;
  }
}

/** The class of a status that fails a call, as `details.reason` and lists state it. */
export function statusClass(status: number): string {
  return status >= 500 ? 'backend_5xx' : 'backend_4xx';
}

/** Statuses that answer preconditions and ranges, beside 206. */
const CONDITIONAL_STATUSES: ReadonlySet<number> = new Set([304, 412, 416]);

/**
 * Classifies a status (contract 1.2). `delivered`: 4xx statuses that the resource delivers as they
 * are. 402 is never among them: only the gateway may ask for money. `conditional`: the request had
 * preconditions or a range, so their outcomes are answers.
 */
export function classify(status: number, delivered: readonly number[], conditional = false): StatusOutcome {
  if (status >= 200 && status <= 299) return 'deliver';
  if (conditional && CONDITIONAL_STATUSES.has(status)) return 'deliver';
  if (status >= 300 && status <= 399) return 'redirect';
  const relayed = status >= 400 && status <= 499 && status !== 402 && delivered.includes(status);
  return relayed ? 'deliver' : 'fail';
}

/** How long a reader may hold an answer back, in all, milliseconds. */
const READER_HOLD_MS = 60_000;
/** The pause between two attempts of an exchange on a held connection, milliseconds. */
const CONNECT_AGAIN_MS = 50;

/** How undici and the operating system call the end of a connection during a request. */
const RESET_CODES: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);
/** The request itself cannot be written as HTTP. */
const UNWRITABLE_CODES: ReadonlySet<string> = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH']);
/** The gateway closed its own side. */
const CLOSED_CODES: ReadonlySet<string> = new Set(['UND_ERR_CLOSED', 'UND_ERR_DESTROYED']);

/** A connection of the pool with its place among the sockets. */
export interface Held {
  readonly connection: Connection;
  readonly place: Admitted;
}

/** Parts that the exchanges with one backend share. */
export interface ExchangeDeps {
  /** Limits the sockets: an exchange with a place takes a connection of the pool. */
  readonly sockets: Limiter;
  readonly pool: ConnectionPool;
  /** Takes the reports of the exchange. */
  readonly health: Health;
  /** For free calls only: a slow reader of a paid answer keeps its socket for `readerHoldMs`. */
  readonly slowReaders: SlowReaders;
  /** Sends the request on a connection; the answer comes through the handler methods. */
  readonly send: (exchange: BackendExchange, connection: Connection) => void;
  /** The exchange needs nothing any more. Called once. */
  readonly ended: (exchange: BackendExchange) => void;
}

/**
 * One exchange with the backend, from the wait for a socket to the last byte of the answer. It is
 * the handler of undici's dispatch. Every end, whatever its cause, passes `#end` exactly once,
 * which gives back the timer, the listener and the socket.
 */
export class BackendExchange extends SocketUser implements Dispatcher.DispatchHandler {
  /** Its kind among those that wait for a socket. */
  readonly kind = 'exchange';
  readonly request: BackendRequest;
  /** Resolves with the head of the answer; rejects with BackendError. */
  readonly answer: Promise<BackendAnswer>;
  readonly #limits: ExchangeLimits;
  readonly #deps: ExchangeDeps;
  readonly #head = Promise.withResolvers<BackendAnswer>();
  readonly #deadline: Deadline;
  #controller: Dispatcher.DispatchController | undefined;
  #received: ReceivedAnswer | undefined;
  #receivedBytes = 0;
  /** Only the end of the connection marks the end of the body. */
  #delimitedByClose = false;
  /** Whether any byte of the request may have reached the backend, in any attempt. */
  #written = false;
  #writtenAt = 0;
  #onReusedSocket = false;
  #answered = false;
  #retried = false;
  /** Its place among the sockets. */
  #place: Admitted | undefined;
  #reader: SlowReader | undefined;
  #ended = false;
  #connection: Connection | undefined;
  /** Whether its connection is a held one, which is opened again until the deadline. */
  readonly #isHeld: boolean;
  #again: NodeJS.Timeout | undefined;
  /** Why its connection could not be opened the last time. */
  #refusedWith: unknown;

  /** `held`: a connection taken from the pool for this exchange. */
  constructor(request: BackendRequest, limits: ExchangeLimits, deps: ExchangeDeps, held?: Held) {
    super();
    this.#connection = held?.connection;
    this.#place = held?.place;
    this.#isHeld = held !== undefined;
    this.request = request;
    this.answer = this.#head.promise;
    this.#limits = limits;
    this.#deps = deps;
    const left = { backend: limits.timeoutMs, reader: limits.readerHoldMs ?? READER_HOLD_MS };
    this.#deadline = new Deadline(left, this.#late);
    limits.signal?.addEventListener('abort', this.#abort);
  }

  /** Waits for a socket, unless it has a held one. Called once. */
  begin(): void {
    if (this.#isHeld) {
      // The library does not look at a socket that was never used; the event loop reads a close by
      // the backend within one turn.
      setImmediate(this.#attempt);
      return;
    }
    const { sockets, slowReaders } = this.#deps;
    this.#place = sockets.enter(this);
    if (sockets.waiting > 0) slowReaders.relieve();
  }

  /** Takes a connection, with a place among the sockets, and sends the request. */
  start(place: Admitted): void {
    this.#place = place;
    this.#connection = this.#deps.pool.take();
    this.#send();
  }

  /** Does nothing: the exchange's own deadline ends the wait for a socket. */
  refuse(): void {}

  /** Ends the exchange: who waits for the head or reads the body gets the BackendError. */
  fail(reason: BackendFailure, cause?: unknown, status?: number): void {
    if (this.#ended) return;
    const error = new BackendError(reason, this.#written, cause, status);
    this.#end();
    this.#controller?.abort(error);
    if (this.#received === undefined) this.#head.reject(error);
    else this.#received.fail(error);
  }

  readonly #abort = (): void => this.fail('aborted');
  readonly #late = (): void => {
    if (this.#deadline.running === 'backend') this.#unanswered(new Unanswered('no answer in time'));
    if (this.#isHeld && !this.#written) this.fail('unreachable', this.#refusedWith);
    else this.fail('timeout');
  };
  readonly #attempt = (): void => {
    if (this.#ended) return;
    // A request that is not written yet can be sent later, whatever its method.
    if (this.#deps.health.unresponsive) this.#attemptAgain();
    else this.#send();
  };

  #send(): void {
    if (this.#connection !== undefined) this.#deps.send(this, this.#connection);
  }

  #attemptAgain(): void {
    this.#again = setTimeout(this.#attempt, CONNECT_AGAIN_MS);
  }

  /**
   * Reports a request that the backend may have and has not answered, if money has moved for it:
   * any caller could leave many unpaid requests unanswered.
   */
  #unanswered(cause: Unanswered): void {
    const { sale } = this.#limits;
    if (sale !== undefined && this.#written && !this.#answered)
      this.#deps.health.unanswered(cause, sale, this.#writtenAt);
  }

  /** Whether it goes on when its caller leaves, as every paid exchange does. */
  get endsAlone(): boolean {
    return this.#limits.signal === undefined;
  }

  #end(): void {
    this.#ended = true;
    this.#deadline.stop();
    clearTimeout(this.#again);
    this.#limits.signal?.removeEventListener('abort', this.#abort);
    const { pool, slowReaders, ended } = this.#deps;
    if (this.#reader !== undefined) slowReaders.release(this.#reader);
    if (this.#connection !== undefined) pool.giveBack(this.#connection);
    this.#place?.leave();
    ended(this);
  }

  /** Called when the exchange has a socket, right before the request is written. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Throwing withdraws the request and, unlike an abort, leaves the connection intact.
    if (this.#ended) throw new Error('the exchange has already ended');
    this.#controller = controller;
    this.#written = true;
    this.#writtenAt = performance.now();
    this.#onReusedSocket = this.socket?.begin() ?? false;
  }

  /** The first byte of an answer, before anything is parsed. */
  onResponseStarted(): void {
    this.#answered = true;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: ReceivedHeaders): void {
    const length = headers['content-length'];
    const empty = status === 204 || status === 304;
    this.#deps.health.answered(this.#limits.sale);
    // Interim answers are ignored; the library itself refuses 101 and an unasked 100.
    if (status < 200) return;
    if (!empty && Number(length ?? 0) > this.#limits.maxResponseBytes) {
      this.fail('response_too_large', undefined, status);
    } else {
      this.#delimitedByClose = !empty && length === undefined && headers['transfer-encoding'] === undefined;
      this.#received = new ReceivedAnswer(status, headers, this);
      this.#head.resolve(this.#received);
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes > this.#limits.maxResponseBytes) this.fail('response_too_large');
    else if (this.#received?.accept(chunk) === false) this.#pause(controller);
  }

  onResponseEnd(): void {
    if (this.#ended) return;
    if (this.#delimitedByClose && this.socket?.broken === true) {
      // The library takes a reset for the end of an answer that has no length. Half an answer must
      // not look whole.
      this.fail('transport');
      return;
    }
    this.#end();
    this.#received?.complete();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#ended) return;
    const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
    if (this.#mayTryAgain(code)) {
      this.#tryAgain(error);
      return;
    }
    const connected = this.#controller !== undefined || UNWRITABLE_CODES.has(code);
    if (!connected && !CLOSED_CODES.has(code)) {
      this.#deps.health.unreachable(error);
      if (this.#isHeld && (!this.#written || this.#retried)) {
        this.#refusedWith = error;
        this.#attemptAgain();
        return;
      }
    }
    if (!this.#onReusedSocket && !CLOSED_CODES.has(code)) this.#unanswered(new Unanswered('no answer', error));
    this.fail(connected ? 'transport' : 'unreachable', error);
  }

  /**
   * The backend may close an idle socket while the request is written to it, or die during a paid
   * request. Only a GET can be sent again then, once.
   */
  #mayTryAgain(code: string): boolean {
    const broken = this.#controller !== undefined && (this.#onReusedSocket || this.#isHeld) && !this.#answered;
    return broken && !this.#retried && this.request.method === 'GET' && RESET_CODES.has(code);
  }

  #tryAgain(error: Error): void {
    this.#retried = true;
    this.#controller = undefined;
    // No stale socket explains the break of a new connection: the backend closed it after the
    // request, or died.
    if (!this.#onReusedSocket) this.#unanswered(new Unanswered('no answer', error));
    // A backend that is about to exit still accepts connections: a paid request is sent later.
    if (this.#isHeld) this.#attemptAgain();
    else this.#send();
  }

  /** The reader has enough for now. */
  #pause(controller: Dispatcher.DispatchController): void {
    controller.pause();
    if (this.#deadline.running === 'reader') return;
    this.#deadline.handOver();
    if (this.#limits.signal === undefined) return;
    this.#reader ??= new SlowReader(() => this.fail('timeout'));
    this.#deps.slowReaders.hold(this.#reader, this.#receivedBytes);
  }

  /** The reader has room again. */
  resume(): void {
    // A stream asks for more whenever it has room, held back or not.
    if (this.#ended || this.#deadline.running === 'backend') return;
    if (this.#reader !== undefined) this.#deps.slowReaders.release(this.#reader);
    this.#deadline.handOver();
    this.#controller?.resume();
  }

  /** The reader wants no more of the answer. */
  abandon(): void {
    if (this.#ended) return;
    this.#end();
    this.#controller?.abort(new BackendError('aborted', true));
  }
}

/** The two clocks of a deadline: one of them runs at a time. */
type Clock = 'backend' | 'reader';

/**
 * The deadline of an exchange, running from construction. The backend's clock stands still while
 * the reader holds the answer back, so that an agent on a slow line cannot make a paid backend
 * late. Meanwhile the reader's clock runs.
 */
class Deadline {
  readonly #late: () => void;
  readonly #left: Record<Clock, number>;
  #running: Clock = 'backend';
  #since = performance.now();
  #timer: NodeJS.Timeout;

  /** `left`: each side's time, milliseconds. `late` is called when either clock runs out. */
  constructor(left: Readonly<Record<Clock, number>>, late: () => void) {
    this.#late = late;
    this.#left = { ...left };
    this.#timer = setTimeout(late, left.backend);
  }

  /** Whose clock runs. */
  get running(): Clock {
    return this.#running;
  }

  /** Stops the clock that runs and starts that of the other side. */
  handOver(): void {
    clearTimeout(this.#timer);
    const now = performance.now();
    this.#left[this.#running] -= now - this.#since;
    this.#since = now;
    this.#running = this.#running === 'backend' ? 'reader' : 'backend';
    this.#timer = setTimeout(this.#late, Math.max(1, this.#left[this.#running]));
  }

  /** Stops both clocks. */
  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** How much of an answer waits for its reader before the backend is asked to wait, bytes. */
export const ANSWER_BUFFER_BYTES = 65_536;

const EMPTY = Buffer.alloc(0);

/**
 * An answer whose head has arrived. Its bytes are kept until the body is asked for, so that an
 * answer that is complete by then needs no stream: most bodies come in one read with their head.
 */
class ReceivedAnswer implements BackendAnswer {
  readonly status: number;
  readonly headers: ReceivedHeaders;
  readonly #source: BackendExchange;
  /** Bytes that came before the body was asked for. */
  #chunks: Buffer[] = [];
  #size = 0;
  #ended = false;
  #failure: BackendError | undefined;
  #body: AnswerBody | undefined;

  constructor(status: number, headers: ReceivedHeaders, source: BackendExchange) {
    this.status = status;
    this.headers = headers;
    this.#source = source;
  }

  get whole(): Buffer | undefined {
    if (!this.#ended || this.#body !== undefined) return undefined;
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

  /** Takes a chunk. False: no more until the body is read, so a whole answer is short. */
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
  readonly #source: BackendExchange;
  #failure: BackendError | undefined;

  constructor(source: BackendExchange) {
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
    // Null: the stream fills its buffer and has no reader yet.
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
