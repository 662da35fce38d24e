/** One exchange with the backend as a state machine, from the wait for a socket to its end. */

import type { Dispatcher } from 'undici';
import type { Admitted, Limiter } from '../limiter.ts';
import { type Connection, SocketUser } from './backend-socket.ts';
import { type Health, Unanswered } from './circuit-breaker.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { Deadline } from './deadline.ts';
import {
  type BackendAnswer,
  BackendError,
  type BackendFailure,
  type BackendRequest,
  type ExchangeLimits,
  type ReceivedHeaders,
} from './exchange.ts';
import { type BodySource, ReceivedAnswer } from './received-answer.ts';
import type { Held } from './reservations.ts';
import { SlowReader, type SlowReaders } from './slow-readers.ts';

/** How long a reader may hold an answer back, in all, milliseconds. */
const READER_HOLD_MS = 60_000;
/** Between two attempts of an exchange on a held connection, milliseconds. */
const CONNECT_AGAIN_MS = 50;

/** How undici and the operating system call the end of a connection during a request. */
const RESET_CODES: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);
/** The request itself cannot be written as HTTP. */
const UNWRITABLE_CODES: ReadonlySet<string> = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH']);
/** The gateway closed its own side. */
const CLOSED_CODES: ReadonlySet<string> = new Set(['UND_ERR_CLOSED', 'UND_ERR_DESTROYED']);

/** What an exchange shares with the others of its backend. */
export interface ExchangeDeps {
  /** An exchange with a place there takes a connection of the pool. */
  readonly sockets: Limiter;
  readonly pool: ConnectionPool;
  /** Learns what became of the request. */
  readonly health: Health;
  /** The backend takes connections and does not answer: requests that can wait should wait. */
  readonly unresponsive: () => boolean;
  /** For free calls only: a paid answer may be read as slowly as it takes. */
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
export class BackendExchange extends SocketUser implements Dispatcher.DispatchHandler, BodySource {
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
  /** Among the sockets. */
  #place: Admitted | undefined;
  #reader: SlowReader | undefined;
  #ended = false;
  #connection: Connection | undefined;
  /** It has a held connection, which is opened again for it until the deadline. */
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
      // The library does not look at a socket that was never used: what the backend did to it
      // meanwhile is read within a turn of the event loop.
      setImmediate(this.#attempt);
      return;
    }
    const { sockets, slowReaders } = this.#deps;
    this.#place = sockets.enter(this);
    if (sockets.waiting > 0) slowReaders.relieve();
  }

  /** It has a place among the sockets. */
  start(place: Admitted): void {
    this.#place = place;
    this.#connection = this.#deps.pool.take();
    this.#send();
  }

  /** Its own deadline ends its wait. */
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
    if (this.#deps.unresponsive()) this.#attemptAgain();
    else this.#send();
  };

  #send(): void {
    if (this.#connection !== undefined) this.#deps.send(this, this.#connection);
  }

  #attemptAgain(): void {
    this.#again = setTimeout(this.#attempt, CONNECT_AGAIN_MS);
  }

  /**
   * Reports a request that the backend may have and has not answered, where money has moved for it:
   * any caller could make many others end like that.
   */
  #unanswered(cause: Unanswered): void {
    const { sale } = this.#limits;
    if (sale !== undefined && this.#written && !this.#answered)
      this.#deps.health.unanswered(cause, sale, this.#writtenAt);
  }

  /** Whether it goes on without its caller, as all that is paid. */
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
    // A new connection is no stale socket: the backend closes what it reads, or it died and may
    // come back.
    if (!this.#onReusedSocket) this.#unanswered(new Unanswered('no answer', error));
    // A backend that is about to end still accepts: a paid request is sent when that is over.
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
