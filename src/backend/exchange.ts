/** An exchange with the backend as its callers see it: request, bounds, answer and failure. */

import type { Readable } from 'node:stream';

/** A request to the backend, complete before the call is priced. `path`: from `/`, with query. */
export interface BackendRequest {
  readonly method: 'GET' | 'DELETE' | 'POST' | 'PUT' | 'PATCH';
  readonly path: string;
  /** Lower-case names, from allow-lists only. The exchange sets `host` and `content-length`. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers that the caller brought and may bring: part of what is bought. Mostly absent. */
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

/** What ends work early: an AbortSignal, or what costs less and has as much of it as is used. */
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
   * All bytes of the body, at most 64 KiB, where they are there and `body` was never asked for:
   * then nothing can break the answer any more.
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
  /** The call does not need it. */
  release(): void;
}

/** Opens a connection for one call. Undefined: the backend cannot be reached now. Never rejects. */
export type ReserveBackend = (sale: Sale) => Promise<HeldConnection | undefined>;

/**
 * Why no usable answer came: `unreachable` no connection (nothing was written), `timeout` the total
 * deadline passed, `transport` the connection broke or the bytes were no HTTP (also 101),
 * `response_too_large` above the cap, `aborted` by the signal.
 */
export type BackendFailure = 'unreachable' | 'timeout' | 'transport' | 'response_too_large' | 'aborted';

export const TOO_LARGE: BackendFailure = 'response_too_large';

/** The closed words of contract 1.2: unreachable and broken off look the same from outside. */
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

/** What a final status of the backend means for the caller. */
type StatusOutcome =
  /** The answer is what was bought or asked for. */
  | { readonly kind: 'deliver' }
  /** Never followed and never relayed: its Location can name an internal host. */
  | { readonly kind: 'redirect' }
  /** The backend did not deliver. */
  | { readonly kind: 'fail' };

/** Why no answer came to a call: a status, a reason of the exchange, or a redirect. */
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

/** How a backend answers preconditions and ranges, beside 206. */
const CONDITIONAL_STATUSES: ReadonlySet<number> = new Set([304, 412, 416]);

/**
 * Classifies a status (contract 1.2). `delivered`: 4xx statuses that the resource delivers as they
 * are. 402 is never among them: only the gateway may ask for money. `conditional`: the request had
 * preconditions or a range, so their outcomes are answers.
 */
export function classify(status: number, delivered: readonly number[], conditional = false): StatusOutcome {
  if (status >= 200 && status <= 299) return { kind: 'deliver' };
  if (conditional && CONDITIONAL_STATUSES.has(status)) return { kind: 'deliver' };
  if (status >= 300 && status <= 399) return { kind: 'redirect' };
  const relayed = status >= 400 && status <= 499 && status !== 402 && delivered.includes(status);
  return { kind: relayed ? 'deliver' : 'fail' };
}
