/**
 * What the ACP adapter and the idempotency machine know of one another: a keyed call, the attempts
 * at the backend that the adapter makes for it, and how the call ended.
 */

import type { Json } from '../json/types.ts';
import type { Unknown } from './claims.ts';
import type { KeyedOperation } from './operations.ts';

/** Makes a repeated keyed call one call, also when a process dies in between (acp 12). */
export interface Idempotency {
  run<Failure>(call: KeyedCall, timeoutMs: number, work: Work<Failure>): Promise<KeyedEnd<Failure>>;
}

/** A call with a key, as far as it decides what counts as the same call. */
export interface KeyedCall {
  readonly clientId: string;
  readonly operation: KeyedOperation;
  /** Decoded; undefined for create. */
  readonly sessionId: string | undefined;
  /** As the caller sent it, trimmed. */
  readonly key: string;
  /** Parsed strictly; an absent body is `{}`. */
  readonly body: Json;
}

/** Calls the backend. Its promises never reject. */
export interface Work<Failure> {
  attempt(attempt: Attempt): Promise<AttemptEnd<Failure>>;
  /** Undefined for operations that move no money: they run again without it. */
  readonly readBack: (() => Promise<ReadBack>) | undefined;
}

/** One attempt at the backend. */
export interface Attempt {
  /**
   * The backend's idempotency key: the same over all attempts, pods, restarts and token changes.
   */
  readonly backendKey: string;
  /** 1 for the first. */
  readonly number: number;
}

/** What came of one attempt at the backend. `Failure`: how the adapter reports it. */
export type AttemptEnd<Failure> =
  /** What was asked for, or a refusal below 500: it is kept. `opened`: the session that it made. */
  | { readonly kind: 'answer'; readonly answer: FinalAnswer; readonly opened?: string }
  /** Certainly nothing happened: no byte was sent, or the backend turned the gateway away. */
  | { readonly kind: 'not_executed'; readonly failure: Failure }
  /** It may have happened. */
  | { readonly kind: 'unknown'; readonly why: Unknown; readonly failure: Failure };

/** An answer in its final bytes: they are kept, and sent again unchanged. */
export interface FinalAnswer {
  readonly status: number;
  readonly body: Uint8Array;
}

/** What the session shows of an attempt whose end is unknown (acp 12.5). */
export type ReadBack =
  | { readonly kind: 'happened'; readonly answer: FinalAnswer }
  /** The backend works on it. */
  | { readonly kind: 'in_progress' }
  | { readonly kind: 'not_happened' }
  /** The session could not be read. */
  | { readonly kind: 'unreadable' };

/** How a call with a key ended. */
export type KeyedEnd<Failure> =
  | {
      readonly kind: 'answered';
      readonly answer: FinalAnswer;
      /** `backend`: now. `kept`: sent again. `session`: found done when the session was read. */
      readonly from: 'backend' | 'kept' | 'session';
    }
  | { readonly kind: 'failed'; readonly failure: Failure }
  /**
   * `in_flight`: an attempt of this key runs, or its end is not known yet. `session_busy`: one of
   * another key runs on the session, or may. `session_unknown`: none runs any more, but how it
   * ended is not known, and the session cannot be read.
   */
  | { readonly kind: 'in_flight' | 'session_busy' | 'session_unknown'; readonly retryAfterS: number }
  | { readonly kind: 'conflict' }
  /** The backend opened a session that is another client's. */
  | { readonly kind: 'foreign' }
  /**
   * The store gave no answer: the backend was not called, or opened a session whose owner could not
   * be written.
   */
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/** Values of the label `outcome` of `acg_checkout_claims_total`. */
export type ClaimOutcome = 'first' | 'again' | 'done' | 'in_flight' | 'session_busy' | 'conflict' | 'unavailable';

/** Receives what happens to claims. */
export interface ClaimWatch {
  claimed(outcome: ClaimOutcome): void;
  /** An attempt was found whose lease had ended. */
  leaseExpired(): void;
  unknown(why: Unknown): void;
  /** The end of an attempt was refused: another one had taken over. */
  fenced(): void;
  /**
   * The end of an attempt could not be stored; its answer goes out, and its lease ends by itself.
   */
  unstored(cause: unknown): void;
  /** A kept answer could not be opened. */
  unopened(): void;
  /** The backend opened a session that is another client's. */
  foreign(): void;
}
