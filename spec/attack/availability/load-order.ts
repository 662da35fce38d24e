/** What the load generator is told to do. `closed`: each connection asks again when it was answered. `open`: so many a second, come what may. */
export interface LoadOrder {
  readonly origin: string;
  readonly path: string;
  readonly body: string;
  readonly connections: number;
  readonly seconds: number;
  readonly shape: { readonly kind: 'closed' } | { readonly kind: 'open'; readonly perSecond: number };
}

/** What it measured. Times in milliseconds, of calls that were answered 200; in an open loop since they were meant to be sent. */
export interface LoadReport {
  readonly seconds: number;
  readonly good: number;
  /** 503 GATEWAY_BUSY with Retry-After. */
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
