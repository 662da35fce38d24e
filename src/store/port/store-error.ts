/** The error that every part of a store throws, and the health of a store. */

/** `degraded` still serves (contract 2). The cause goes to the log, never to an answer. */
export type StoreHealth =
  | { readonly status: 'ok' }
  | { readonly status: 'degraded' | 'unreachable' | 'unwritable'; readonly cause: string };

/** Thrown by every part of a store that gives no answer. */
export class StoreError extends Error {
  /** False only when it is certain that nothing was written. */
  readonly mayStand: boolean;

  constructor(cause: unknown, mayStand = true) {
    super('the store did not answer', { cause });
    this.name = 'StoreError';
    this.mayStand = mayStand;
  }
}
