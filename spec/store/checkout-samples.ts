import { createHash, randomUUID } from 'node:crypto';
import type { Claim, Claimed, Hold, Unknown } from '../../src/checkouts/claims.ts';

/** Longer than any test lasts, milliseconds. */
export const LONG_MS = 600_000;
/** Over at the next look at the clock, milliseconds. */
export const BRIEF_MS = 1;

/** 43 characters, as names, locks and fingerprints have. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** A claim of a key and a session of its own, with `changes`. */
export function checkoutClaim(changes: Partial<Claim> = {}): Claim {
  return {
    name: digestOf(randomUUID()),
    lock: digestOf(randomUUID()),
    fingerprint: digestOf('body'),
    owner: randomUUID(),
    leaseMs: LONG_MS,
    keepMs: LONG_MS,
    ...changes,
  };
}

/** The same key and session, asked for by a new attempt. */
export function nextOf(claim: Claim, changes: Partial<Claim> = {}): Claim {
  return { ...claim, owner: randomUUID(), ...changes };
}

/** What ends an attempt that was granted. */
export function holdOf({ name, lock, fingerprint, owner }: Claim, fence = 1): Hold {
  return { name, lock, fingerprint, owner, fence };
}

/** A first attempt that is granted, and a later one whose earlier attempt has an unknown end. */
export const FIRST: Claimed = { kind: 'granted', fence: 1 };
export function grantedAfter(why: Unknown, fence: number, otherKey = false): object {
  return { kind: 'granted', fence, earlier: { why, otherKey } };
}

/** An answer without its times. */
export function timeless(claimed: Claimed): object {
  return JSON.parse(
    JSON.stringify(claimed, (name, value) => (/^(?:age|leaseLeft|since)Ms$/.test(name) ? undefined : value)),
  );
}
