import type { Json } from '../json/types.ts';
import type { Unknown } from './claims.ts';
import type { KeyedOperation } from './operations.ts';

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

/** One attempt at the merchant. */
export interface Attempt {
  /**
   * The merchant's own idempotency key: the same over all attempts, pods, restarts and token
   * changes.
   */
  readonly merchantKey: string;
  /** 1 for the first. */
  readonly number: number;
}

/** An answer in its final bytes: they are kept and given again as they are. */
export interface FinalAnswer {
  readonly status: number;
  readonly body: Uint8Array;
}

/** What came of one attempt at the merchant. `Failure`: how the adapter says it. */
export type AttemptEnd<Failure> =
  /** What was asked for, or a refusal below 500: it is kept. `opened`: the session that it made. */
  | { readonly kind: 'answer'; readonly answer: FinalAnswer; readonly opened?: string }
  /** Certainly nothing happened: no byte was sent, or the merchant turned the gateway away. */
  | { readonly kind: 'not_executed'; readonly failure: Failure }
  /** It may have happened. */
  | { readonly kind: 'unknown'; readonly why: Unknown; readonly failure: Failure };

/** What the session itself tells of an attempt whose end is unknown (acp 12.5). */
export type ReadBack =
  | { readonly kind: 'happened'; readonly answer: FinalAnswer }
  /** The merchant is at it. */
  | { readonly kind: 'in_progress' }
  | { readonly kind: 'not_happened' }
  /** The session could not be read. */
  | { readonly kind: 'unreadable' };

/** How a call reaches the merchant. Neither rejects. */
export interface Work<Failure> {
  attempt(attempt: Attempt): Promise<AttemptEnd<Failure>>;
  /** Undefined for operations that move no money: they simply run again. */
  readonly readBack: (() => Promise<ReadBack>) | undefined;
}

/** How a call with a key ended. */
export type KeyedEnd<Failure> =
  | {
      readonly kind: 'answered';
      readonly answer: FinalAnswer;
      /** `merchant`: now. `kept`: given again. `session`: found done when the session was read. */
      readonly from: 'merchant' | 'kept' | 'session';
    }
  | { readonly kind: 'failed'; readonly failure: Failure }
  /**
   * `in_flight`: an attempt of this key runs, or nobody knows yet how it ended. `session_busy`: one
   * of another key runs on the session, or may. `session_unknown`: none does any more, but how it
   * ended is not known, and the session cannot be read.
   */
  | { readonly kind: 'in_flight' | 'session_busy' | 'session_unknown'; readonly retryAfterS: number }
  | { readonly kind: 'conflict' }
  /** The merchant opened a session that is another client's. */
  | { readonly kind: 'foreign' }
  /**
   * The store gave no answer: the merchant was not called, or opened a session of which it could
   * not be written down whose it is.
   */
  | { readonly kind: 'unavailable'; readonly cause: unknown };

/** Makes a keyed call that is repeated one call, whatever process dies in between (acp 12). */
export interface Idempotency {
  run<Failure>(call: KeyedCall, timeoutMs: number, work: Work<Failure>): Promise<KeyedEnd<Failure>>;
}

/** What operators count. */
export type ClaimOutcome = 'first' | 'again' | 'done' | 'in_flight' | 'session_busy' | 'conflict' | 'unavailable';

/** Told of what happens to claims. */
export interface ClaimWatch {
  claimed(outcome: ClaimOutcome): void;
  /** An attempt was found whose lease had ended. */
  leaseExpired(): void;
  unknown(why: Unknown): void;
  /** The end of an attempt was refused: another one had taken over. */
  fenced(): void;
  /**
   * The end of an attempt could not be kept, and what the caller was told stands. Its lease ends by
   * itself.
   */
  unstored(cause: unknown): void;
  /** A kept answer could not be opened. */
  unopened(): void;
  /** The merchant opened a session that is another client's. */
  foreign(): void;
}
