/** Checks the commands of `CheckoutClaims` for every store, before anything is written. */

import type { Claim, Hold, Owning, SealedAnswer, UnknownEnd } from './claims.ts';
import { MAX_DOCUMENT_BYTES } from './operations.ts';

/** base64url of HMAC-SHA256. */
const DIGEST = /^[A-Za-z0-9_-]{43}$/;
const OWNER = /^[A-Za-z0-9_-]{1,64}$/;
const PRINTABLE = /^[!-~]*$/;
/**
 * Longest sealed answer, characters: an incompressible document in base64url, and the seal's part.
 */
const MAX_SEALED_LENGTH = 2 * MAX_DOCUMENT_BYTES;
/** A leap year, milliseconds. */
const MAX_SPAN_MS = 366 * 86_400_000;
const [LEAST_STATUS, MOST_STATUS] = [100, 599];

/** @throws RangeError a bug of the caller, before anything is written. */
export function assertCheckoutClaim({ name, lock, fingerprint, owner, leaseMs, keepMs, unopened }: Claim): void {
  assertNames(name, lock, owner);
  assertFingerprint(fingerprint);
  if (unopened !== undefined) assertSealed(unopened);
  assertSpan(leaseMs);
  assertSpan(keepMs);
}

/** @throws RangeError a bug of the caller, before anything is written. */
export function assertHold({ name, lock, fingerprint, owner, fence }: Hold): void {
  assertNames(name, lock, owner);
  assertFingerprint(fingerprint);
  if (!Number.isSafeInteger(fence) || fence < 1) throw new RangeError('a fencing token is a number from 1 on');
}

/** @throws RangeError a bug of the caller, before anything is written. */
export function assertSealedAnswer({ status, sealed, keepMs }: SealedAnswer): void {
  if (!Number.isInteger(status) || status < LEAST_STATUS || status > MOST_STATUS)
    throw new RangeError(`a status is a number from ${LEAST_STATUS} to ${MOST_STATUS}`);
  assertSealed(sealed);
  assertSpan(keepMs);
}

/** @throws RangeError a bug of the caller, before anything is written. */
export function assertUnknownEnd({ keepMs }: UnknownEnd): void {
  assertSpan(keepMs);
}

/** @throws RangeError a bug of the caller, before anything is written. */
export function assertOwning({ session, owner, keepMs }: Owning): void {
  if (!DIGEST.test(session) || !DIGEST.test(owner))
    throw new RangeError('a session and its owner are named by 43 characters of base64url');
  assertSpan(keepMs);
}

function assertNames(name: string, lock: string | undefined, owner: string): void {
  if (!DIGEST.test(name) || (lock !== undefined && !DIGEST.test(lock)))
    throw new RangeError('a claim and a lock are named by 43 characters of base64url');
  if (!OWNER.test(owner)) throw new RangeError('an owner is 1 to 64 letters, digits and _ -');
}

function assertFingerprint(fingerprint: string): void {
  if (!DIGEST.test(fingerprint)) throw new RangeError('a fingerprint has 43 characters of base64url');
}

function assertSealed(sealed: string): void {
  if (sealed.length > MAX_SEALED_LENGTH || !PRINTABLE.test(sealed))
    throw new RangeError(`a sealed answer is at most ${MAX_SEALED_LENGTH} printable characters`);
}

function assertSpan(ms: number): void {
  if (!Number.isSafeInteger(ms) || ms < 1 || ms > MAX_SPAN_MS)
    throw new RangeError(`a claim lasts for whole milliseconds, 1 to ${MAX_SPAN_MS}`);
}
