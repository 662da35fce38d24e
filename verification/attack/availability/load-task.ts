/** The messages between a run and the load generator. */

import type { CallKind } from './blend.ts';

/**
 * A task of the load generator. `closed`: each connection sends its next call after an answer.
 * `open`: a fixed rate.
 */
export interface LoadTask {
  readonly origin: string;
  /** Of the free resource. */
  readonly path: string;
  readonly body: string;
  /** Calls of a priced resource; without it only the free one is called. */
  readonly priced?: PricedCalls;
  readonly connections: number;
  readonly seconds: number;
  readonly shape: { readonly kind: 'closed' } | { readonly kind: 'open'; readonly perSecond: number };
}

/** Calls of a resource that has a price, among those of the free one. */
export interface PricedCalls {
  readonly path: string;
  /** Kinds of the calls, in turn. */
  readonly blend: readonly CallKind[];
  /**
   * Proofs to be signed before the clock starts: one for each paid call. A call that finds none
   * left is `wrong`.
   */
  readonly proofs: number;
}

/** The results of the calls of one kind. Times as below. */
export interface KindReport {
  readonly kind: CallKind;
  readonly sent: number;
  readonly good: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/**
 * The measurements. Times in milliseconds, of served calls; in an open loop since they were due.
 */
export interface LoadReport {
  readonly seconds: number;
  readonly kinds: readonly KindReport[];
  readonly good: number;
  /** 503 with Retry-After. */
  readonly busy: number;
  /** Anything else: another status, a 503 without Retry-After, a broken connection. */
  readonly wrong: number;
  /** The first wrong answer. */
  readonly wrongest: string | undefined;
  /** Calls that no connection was free for when the run ended. */
  readonly unsent: number;
  /** Connections opened beyond the first of each lane. */
  readonly reopened: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of the refusals. */
  readonly busyP99Ms: number;
}

/**
 * A message of the load generator: connections and proofs are ready, and it waits for `go`; its
 * report; why it failed.
 */
export type LoadWord =
  | { readonly word: 'prepared' }
  | { readonly word: 'done'; readonly report: LoadReport }
  | { readonly word: 'failed'; readonly why: string };
