/**
 * The port of the checkout claims: what a store remembers of one idempotency key and of one
 * session. The machine (machine.ts) asks it before each call of the backend; claim-table.ts is its
 * meaning.
 */

/**
 * One attempt asks for one key. Names: base64url HMAC-SHA256, 43 characters, which reveal no
 * client, key or session (acp 12.1). Times: milliseconds of the store's own clock.
 */
export interface Claim {
  /** Of the key: client, operation, session and key. */
  readonly name: string;
  /** Of the session, for operations that exclude one another on it under any key (acp 12.7). */
  readonly lock: string | undefined;
  /** Keyed digest of the body's canonical form. */
  readonly fingerprint: string;
  /** Random, one for each attempt: a command that is repeated after a lost reply is known by it. */
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

/** Why the end of an attempt is unknown. */
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

/** The claim of an attempt that may call the backend; each of its ends carries it. */
export interface Hold {
  readonly name: string;
  readonly lock: string | undefined;
  /** For a store that lost its data meanwhile: an end still belongs to this body only. */
  readonly fingerprint: string;
  readonly owner: string;
  /** Fencing token: grows with every attempt of a name; older ones are refused (acp 12.6). */
  readonly fence: number;
}

/** An attempt that may have reached the backend, and whose end is unknown. */
export interface EarlierAttempt {
  readonly why: Unknown;
  /** Since it began, milliseconds; of several attempts, the last one. */
  readonly sinceMs: number;
  /** Whether one of them had another key: the backend cannot know that one by this key. */
  readonly otherKey: boolean;
}

/** The answer to a claim; the kinds are those of the payment ledger where both have them. */
export type Claimed =
  /**
   * This attempt may call the backend. `earlier`: it must find out first what became of that one.
   */
  | { readonly kind: 'granted'; readonly fence: number; readonly earlier?: EarlierAttempt }
  /** Nothing is left to do: the status and the sealed body are the answer. */
  | { readonly kind: 'completed'; readonly status: number; readonly sealed: string }
  /** An attempt of this key runs: since when, and how long its lease lasts. */
  | { readonly kind: 'in_flight'; readonly ageMs: number; readonly leaseLeftMs: number }
  /** An attempt of another key runs on the session. */
  | { readonly kind: 'session_busy'; readonly ageMs: number; readonly leaseLeftMs: number }
  /** The key belongs to another body. */
  | { readonly kind: 'conflict' };

/** A kept answer. `sealed`: printable ASCII. `keepMs`: how long from now on, milliseconds. */
export interface SealedAnswer {
  readonly status: number;
  readonly sealed: string;
  readonly keepMs: number;
}

/** An end that is unknown. `keepMs`: how long from now on it is remembered, milliseconds. */
export interface UnknownEnd {
  readonly why: Unknown;
  readonly keepMs: number;
}

/**
 * One session and one client. `session`, `owner`: base64url HMAC-SHA256, 43 characters; a client
 * has another owner name for each session, so the store does not show which sessions have one
 * owner.
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
 * The claims of checkout operations (acp 12.4). Each command is one write, answers the same when it
 * is repeated after a lost reply, and no older fencing token can undo it. A store that lost its
 * data writes an end all the same, so the next attempt knows of the earlier one. Every command
 * throws StoreError when the store gives no answer, and RangeError for a bug of the caller.
 */
export interface CheckoutClaims {
  claim(claim: Claim): Promise<Claimed>;
  /** It ended with this answer. False: another attempt took over, and nothing was written. */
  finish(hold: Hold, answer: SealedAnswer): Promise<boolean>;
  /** It may have happened. False: another attempt took over. */
  unknown(hold: Hold, end: UnknownEnd): Promise<boolean>;
  /**
   * It certainly did not happen in this attempt. The record is deleted, unless an earlier attempt
   * may have reached the backend.
   */
  release(hold: Hold): Promise<boolean>;
  /** Writes whose a session is; the first owner stays. False: it is another client's. */
  own(owning: Owning): Promise<boolean>;
  /** Whose a session is. Being asked by its owner prolongs how long that is remembered. */
  ownership(owning: Owning): Promise<Ownership>;
}
