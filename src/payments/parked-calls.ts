import { sealedLength } from '../crypto/sealed-text.ts';

/** Most calls that wait unclaimed at a time: unpaid traffic must not grow the store, nor push out what others wait for. */
export const MAX_PARKED_CALLS = 1_000;
/** Most calls that are claimed at a time: claims are free for whoever has spent one authorization. */
export const MAX_CLAIMED_CALLS = 5_000;
/** Longest text of a parked call, characters; what is longer has to be sent again by its buyer. */
export const MAX_PARKED_LENGTH = 16_384;
/** What a store must take of one, characters: sealed, a call is base64url of its UTF-8, of which a character has three bytes at most. */
export const MAX_STORED_PARKED_LENGTH = sealedLength(3 * MAX_PARKED_LENGTH);

/** What came of a claim. `again`: the same claimant had it before. */
export type ParkedClaim =
  | { readonly kind: 'yours'; readonly call: string; readonly again: boolean }
  /** Somebody else has claimed it. */
  | { readonly kind: 'taken' }
  /** Never there, or its time is over. */
  | { readonly kind: 'none' };

/**
 * Calls that were asked for money and whose buyers come back with nothing but the name of the call and a proof (the x402 extension of
 * A2A). They are kept in the store, so that any replica can go on with them, also after a restart. A call belongs to the first who
 * claims it, for as long as he may ask again: two payments can never run for one call, and a buyer whose answer was lost finds it.
 * Every command may be repeated.
 */
export interface ParkedCalls {
  /**
   * Keeps a call under a name that nobody can guess for `forMs` milliseconds; the same name again replaces what is unclaimed there.
   * False when as many wait or are claimed as may, or when it was claimed itself. @throws StoreError
   */
  park(name: string, call: string, forMs: number): Promise<boolean>;
  /** Gives the call to its first claimant and to nobody else, and keeps it for him for `forMs` from his first claim. @throws StoreError */
  claim(name: string, claimant: string, forMs: number): Promise<ParkedClaim>;
  /**
   * Lets it wait for anybody again for `forMs`: what its claimant brought is worthless. False when it is not his, when he claimed it
   * more than once (the other attempt may still run), or when as many wait as may: then it is forgotten. @throws StoreError
   */
  release(name: string, claimant: string, forMs: number): Promise<boolean>;
}
