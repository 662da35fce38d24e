/** What runs and load generator say to each other. */

import type { CallKind } from './blend.ts';

/**
 * What the load generator is told to do. `closed`: each connection asks again when it was answered.
 * `open`: so many a second, come what may.
 */
export interface LoadTask {
  readonly origin: string;
  /** Of the free resource. */
  readonly path: string;
  readonly body: string;
  /** What else is asked; only the free resource unless given. */
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

/** What came of the calls of one kind. Times as below. */
export interface KindReport {
  readonly kind: CallKind;
  readonly sent: number;
  readonly good: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/**
 * What it measured. Times in milliseconds, of calls that were served; in an open loop since they
 * were meant to be sent.
 */
export interface LoadReport {
  readonly seconds: number;
  readonly kinds: readonly KindReport[];
  readonly good: number;
  /** 503 with Retry-After. */
  readonly busy: number;
  /** Anything else: another status, a 503 without Retry-After, a broken connection. */
  readonly wrong: number;
  /** The first of them. */
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
 * What the load generator says: connections and proofs are there, and it waits for `go`; what it
 * measured; why it could do nothing.
 */
export type LoadWord =
  | { readonly word: 'prepared' }
  | { readonly word: 'done'; readonly report: LoadReport }
  | { readonly word: 'failed'; readonly why: string };
