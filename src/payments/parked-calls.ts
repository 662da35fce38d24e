/** Most calls that are parked at a time; the oldest gives way, so that unpaid traffic cannot grow the store. */
export const MAX_PARKED_CALLS = 1_000;
/** Longest text of a parked call, characters; what is longer has to be sent again by its buyer. */
export const MAX_PARKED_LENGTH = 16_384;

/**
 * Calls that were asked for money and whose buyers come back with nothing but the name of the call and a proof (the x402 extension of
 * A2A). They are kept in the store, so that any replica can go on with them, also after a restart. No money has moved for them.
 */
export interface ParkedCalls {
  /**
   * Keeps a call under a name that nobody can guess for `forMs` milliseconds. A call under the same name is replaced.
   * @throws StoreError
   */
  park(name: string, call: string, forMs: number): Promise<void>;
  /** Takes a call out: of several that ask at once, one gets it. Undefined: never there, too late, or taken. @throws StoreError */
  take(name: string): Promise<string | undefined>;
}
