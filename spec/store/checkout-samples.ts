import { createHash, randomUUID } from 'node:crypto';
import type { Claim, Claimed, Hold } from '../../src/checkouts/claims.ts';

/** Longer than any test lasts, milliseconds. */
export const LONG_MS = 600_000;
/** Over at the next look at the clock, milliseconds. */
export const BRIEF_MS = 1;

/** 43 characters, as names, locks and fingerprints have. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** A claim of a key and a session of its own, unless `changes` says more. */
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
export function holdOf({ name, lock, fingerprint, owner }: Claim, token = 1): Hold {
  return { name, lock, fingerprint, owner, token };
}

/** An answer without the times of it. */
export function timeless(claimed: Claimed): object {
  const { ageMs: _age, leftMs: _left, sinceMs: _since, ...rest } = { ageMs: 0, leftMs: 0, sinceMs: 0, ...claimed };
  return rest;
}
