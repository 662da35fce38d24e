/**
 * What is remembered of one idempotency key, and of one session. Names: base64url HMAC-SHA256, 43
 * characters; they tell nothing of the client, the key or the session (acp 12.1). Times:
 * milliseconds of the store's own clock.
 */
export interface Claim {
  /** Of the key: client, operation, session and key. */
  readonly name: string;
  /**
   * Of the session, for operations that exclude one another there whatever their keys are (acp
   * 12.7).
   */
  readonly lock: string | undefined;
  /** Keyed digest of the body's canonical form. */
  readonly fingerprint: string;
  /**
   * Random, one for each attempt: whoever repeats a command whose reply was lost is recognised by
   * it.
   */
  readonly owner: string;
  /** How long the attempt has, milliseconds. Afterwards another one may take over. */
  readonly leaseMs: number;
  /** How long the record lives beyond the lease, milliseconds. */
  readonly keepMs: number;
  /**
   * A sealed answer of this name that cannot be opened: while the record holds exactly this one, it
   * counts as an unknown end.
   */
  readonly unopened?: string;
}

/** Why nobody knows what became of an attempt. */
export const UNKNOWNS = [
  'timeout',
  'reset',
  'status',
  'invalid_document',
  'lease_expired',
  'in_progress',
  'unopened',
  'unowned',
] as const;
export type Unknown = (typeof UNKNOWNS)[number];

/**
 * An attempt that may call the merchant. `token` grows with every attempt of a name: a later one
 * fences off the earlier (acp 12.6).
 */
export interface Hold {
  readonly name: string;
  readonly lock: string | undefined;
  /** For a store that lost its data meanwhile: an end still belongs to this body only. */
  readonly fingerprint: string;
  readonly owner: string;
  readonly token: number;
}

export type Claimed =
  /** The first attempt of this key, and no other one on the session whose end is unknown. */
  | { readonly kind: 'first'; readonly token: number }
  /**
   * An earlier attempt, of this key or of another one on the session, may have reached the
   * merchant. `sinceMs`: since it began (the last of them). `other`: one of them had another key,
   * so the merchant cannot know it by this one's.
   */
  | {
      readonly kind: 'again';
      readonly token: number;
      readonly why: Unknown;
      readonly sinceMs: number;
      readonly other: boolean;
    }
  /** It ended: the status and the sealed body are given again. */
  | { readonly kind: 'done'; readonly status: number; readonly sealed: string }
  /** An attempt of this key runs: since when, and how long it has at most. */
  | { readonly kind: 'in_flight'; readonly ageMs: number; readonly leftMs: number }
  /** An attempt of another key runs on the session. */
  | { readonly kind: 'session_busy'; readonly ageMs: number; readonly leftMs: number }
  /** The key belongs to another body. */
  | { readonly kind: 'conflict' };

/** What is given again. `sealed`: printable ASCII. `keepMs`: how long from now on, milliseconds. */
export interface SealedAnswer {
  readonly status: number;
  readonly sealed: string;
  readonly keepMs: number;
}

/** `keepMs`: how long from now on it is remembered that nobody knows, milliseconds. */
export interface UnknownEnd {
  readonly why: Unknown;
  readonly keepMs: number;
}

/**
 * One session and one client. `session`, `owner`: base64url HMAC-SHA256, 43 characters; the owner's
 * is another one for each session, so that the store does not tell which sessions have one owner.
 */
export interface Owning {
  readonly session: string;
  readonly owner: string;
  /** How long from now on it is remembered, milliseconds. */
  readonly keepMs: number;
}

/** Whose a session is, as one client sees it. */
export type Ownership = 'own' | 'other' | 'none';

/**
 * The claims of checkout operations (acp 12.4): each command is one write, answers the same when it
 * is repeated after a lost reply, and is undone by nobody whose token is older. A store that lost
 * its data writes down an end all the same: otherwise the next attempt would be a first one. Every
 * command throws StoreError when the store gave no answer, and RangeError for a bug of the caller.
 */
export interface CheckoutClaims {
  claim(claim: Claim): Promise<Claimed>;
  /** It ended with this answer. False: another attempt took over, and nothing was written. */
  finish(hold: Hold, answer: SealedAnswer): Promise<boolean>;
  /** Nobody knows whether it happened. False: another attempt took over. */
  unknown(hold: Hold, end: UnknownEnd): Promise<boolean>;
  /**
   * It certainly did not happen in this attempt. The record goes, unless an earlier attempt may
   * have reached the merchant.
   */
  release(hold: Hold): Promise<boolean>;
  /**
   * Writes down whose a session is; the first owner stays. False: it is another's, and nothing was
   * written.
   */
  own(owning: Owning): Promise<boolean>;
  /** Whose it is. What is its own is remembered for longer by that, and nothing else is. */
  ownership(owning: Owning): Promise<Ownership>;
}
