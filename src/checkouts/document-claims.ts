/** `documentClaims` runs the table of checkout claims over documents. */

import { type Changes, type How, parsed, type Transact } from '../store/port/commit.ts';
import {
  type CheckoutClaims,
  type Claim,
  type ClaimRecord,
  claimCheckout,
  finishCheckout,
  type Hold,
  type LockRecord,
  type Outcome,
  type Owning,
  releaseCheckout,
  type SealedAnswer,
  type Standing,
  type UnknownEnd,
  unknownCheckout,
} from './claim-table.ts';
import { MAX_DOCUMENT_BYTES } from './operations.ts';
import { type OwnerOutcome, type OwnerRecord, ownershipOf, ownSession } from './sessions.ts';

const claimKey = (name: string): string => `acp:idem:${name}`;
const lockKey = (name: string): string => `acp:lock:${name}`;
const ownerKey = (session: string): string => `acp:own:${session}`;

/**
 * A failover that forgot a claim or an answer would make the call twice, so a replica has the claim
 * before the backend is called, and the answer before the caller is answered.
 */
export function documentClaims(transact: Transact): CheckoutClaims {
  const onOwner = <Answer>(
    session: string,
    how: How,
    command: (found: OwnerRecord | undefined, now: number) => OwnerOutcome<Answer>,
  ): Promise<Answer> =>
    transact([ownerKey(session)], (read, now) => {
      const found = parsed<OwnerRecord>(ownerKey(session), read(ownerKey(session)));
      const { answer, next } = command(found, now);
      return next === found ? { answer } : { answer, changes: { documents: [written(ownerKey(session), next)], how } };
    });
  const settle = <Answer>(
    { name, lock }: { readonly name: string; readonly lock: string | undefined },
    how: How,
    command: (found: Standing, now: number) => Outcome<Answer>,
  ): Promise<Answer> =>
    transact([claimKey(name), ...(lock === undefined ? [] : [lockKey(lock)])], (read, now) => {
      const found = {
        record: parsed<ClaimRecord>(claimKey(name), read(claimKey(name))),
        lock: lock === undefined ? undefined : parsed<LockRecord>(lockKey(lock), read(lockKey(lock))),
      };
      const { answer, next } = command(found, now);
      const documents = [
        // A repeated end writes its record again: a replica may not have it yet.
        ...(next.record !== found.record || (how === 'replicated' && answer === true)
          ? [written(claimKey(name), next.record)]
          : []),
        ...(lock !== undefined && next.lock !== found.lock ? [written(lockKey(lock), next.lock)] : []),
      ];
      return documents.length === 0 ? { answer } : { answer, changes: { documents, how } };
    });
  return {
    async claim(claim) {
      assertCheckoutClaim(claim);
      return settle(claim, 'replicated', (found, now) => claimCheckout(found, claim, now));
    },
    async finish(hold, answer) {
      assertHold(hold);
      assertSealedAnswer(answer);
      return settle(hold, 'replicated', (found, now) => finishCheckout(found, hold, answer, now));
    },
    async unknown(hold, end) {
      assertHold(hold);
      assertUnknownEnd(end);
      return settle(hold, 'now', (found, now) => unknownCheckout(found, hold, end, now));
    },
    async release(hold) {
      assertHold(hold);
      return settle(hold, 'now', (found, now) => releaseCheckout(found, hold, now));
    },
    async own(owning) {
      assertOwning(owning);
      return onOwner(owning.session, 'replicated', (found, now) => ownSession(found, owning, now));
    },
    async ownership(owning) {
      assertOwning(owning);
      return onOwner(owning.session, 'now', (found, now) => ownershipOf(found, owning, now));
    },
  };
}

function written(key: string, next: { readonly ends: number } | undefined): Changes['documents'][number] {
  return next === undefined ? { key, value: null } : { key, value: JSON.stringify(next), endMs: next.ends, made: next };
}

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
function assertCheckoutClaim({ name, lock, fingerprint, owner, leaseMs, keepMs, unopened }: Claim): void {
  assertNames(name, lock, owner);
  assertFingerprint(fingerprint);
  if (unopened !== undefined) assertSealed(unopened);
  assertSpan(leaseMs);
  assertSpan(keepMs);
}

/** @throws RangeError a bug of the caller, before anything is written. */
function assertHold({ name, lock, fingerprint, owner, fence }: Hold): void {
  assertNames(name, lock, owner);
  assertFingerprint(fingerprint);
  if (!Number.isSafeInteger(fence) || fence < 1) throw new RangeError('a fencing token is a number from 1 on');
}

/** @throws RangeError a bug of the caller, before anything is written. */
function assertSealedAnswer({ status, sealed, keepMs }: SealedAnswer): void {
  if (!Number.isInteger(status) || status < LEAST_STATUS || status > MOST_STATUS)
    throw new RangeError(`a status is a number from ${LEAST_STATUS} to ${MOST_STATUS}`);
  assertSealed(sealed);
  assertSpan(keepMs);
}

/** @throws RangeError a bug of the caller, before anything is written. */
function assertUnknownEnd({ keepMs }: UnknownEnd): void {
  assertSpan(keepMs);
}

/** @throws RangeError a bug of the caller, before anything is written. */
function assertOwning({ session, owner, keepMs }: Owning): void {
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
