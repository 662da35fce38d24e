/**
 * The port of checkout claims over Redis: checks each command, runs its Lua script, reads the
 * reply.
 */

import { isRefusal } from '../../checkouts/claim-table.ts';
import {
  type CheckoutClaims,
  type Claimed,
  type Hold,
  type Ownership,
  type Owning,
  UNKNOWNS,
  type Unknown,
} from '../../checkouts/claims.ts';
import { LedgerCorruption } from '../../payments/ledger/invariants.ts';
import {
  assertCheckoutClaim,
  assertHold,
  assertOwning,
  assertSealedAnswer,
  assertUnknownEnd,
} from '../port/checkout-claim.ts';
import type { RedisClient } from './client.ts';
import type { RedisKeys } from './keys.ts';
import { runReplicated } from './replication.ts';
import { parts } from './reply.ts';
import {
  CHECKOUT_CLAIM,
  CHECKOUT_FINISH,
  CHECKOUT_RELEASE,
  CHECKOUT_UNKNOWN,
  type Execution,
  run,
  type Script,
  SESSION_OWN,
  SESSION_OWNERSHIP,
} from './script.ts';

/** The reply of a script that wrote the end of an attempt. */
const WRITTEN = 1;

/**
 * Claims of checkout operations. `replicated`: as for the ledger. A failover that forgot a claim or
 * an answer would make it twice, so a replica must have it before the backend is called and before
 * the caller is answered.
 */
export function redisCheckouts(
  { redis, replicated }: { readonly redis: RedisClient; readonly replicated?: RedisClient | undefined },
  names: RedisKeys,
): CheckoutClaims {
  const guarded = (script: Script, execution: Execution): Promise<unknown> =>
    replicated === undefined ? run(redis, script, execution) : runReplicated(replicated, script, execution);
  const keysOf = ({ name, lock }: { readonly name: string; readonly lock: string | undefined }): readonly string[] => [
    names.checkout(name),
    ...(lock === undefined ? [] : [names.checkoutLock(lock)]),
  ];
  return {
    async claim(claim) {
      assertCheckoutClaim(claim);
      const { name, fingerprint, owner, leaseMs, keepMs, unopened } = claim;
      const plan = { name, fingerprint, owner, leaseMs, keepMs };
      const rest = unopened === undefined ? [] : [Buffer.from(unopened)];
      return claimedOf(await guarded(CHECKOUT_CLAIM, { keys: keysOf(claim), plan, rest }));
    },
    async finish(hold, { status, sealed, keepMs }) {
      assertHold(hold);
      assertSealedAnswer({ status, sealed, keepMs });
      const plan = { ...planOf(hold), status, keepMs, refused: isRefusal(status) };
      const rest = [Buffer.from(sealed)];
      return finishedOf(await guarded(CHECKOUT_FINISH, { keys: keysOf(hold), plan, rest }));
    },
    async unknown(hold, end) {
      assertHold(hold);
      assertUnknownEnd(end);
      const { why, keepMs } = end;
      return (
        (await run(redis, CHECKOUT_UNKNOWN, { keys: keysOf(hold), plan: { ...planOf(hold), why, keepMs } })) === WRITTEN
      );
    },
    async release(hold) {
      assertHold(hold);
      return (await run(redis, CHECKOUT_RELEASE, { keys: keysOf(hold), plan: planOf(hold) })) === WRITTEN;
    },
    async own(owning) {
      assertOwning(owning);
      return ownedOf(await guarded(SESSION_OWN, ownerExecution(names, owning)));
    },
    async ownership(owning) {
      assertOwning(owning);
      return ownershipIn(await run(redis, SESSION_OWNERSHIP, ownerExecution(names, owning)));
    },
  };
}

function ownerExecution(names: RedisKeys, { session, owner, keepMs }: Owning): Execution {
  return { keys: [names.checkoutOwner(session)], plan: { owner, keepMs } };
}

/** The reply of session-own.lua. @throws LedgerCorruption */
function ownedOf(reply: unknown): boolean {
  const [kind] = parts(reply);
  if (kind !== 'done' && kind !== 'other') throw new LedgerCorruption('unknown reply to whose a session becomes');
  return kind === 'done';
}

/** The reply of session-ownership.lua. @throws LedgerCorruption */
function ownershipIn(reply: unknown): Ownership {
  const [kind] = parts(reply);
  if (kind !== 'own' && kind !== 'other' && kind !== 'none')
    throw new LedgerCorruption('unknown reply to whose a session is');
  return kind;
}

function planOf({ name, fingerprint, owner, fence }: Hold) {
  return { name, fingerprint, owner, fence };
}

/** The reply of checkout-claim.lua: kind, and what belongs to it. @throws LedgerCorruption */
function claimedOf(reply: unknown): Claimed {
  const [kind, ...facts] = parts(reply);
  switch (kind) {
    case 'granted': {
      const [fence, why, sinceMs, otherKey] = facts;
      if (why === undefined) return { kind, fence: Number(fence) };
      const earlier = { why: whyOf(why), sinceMs: Number(sinceMs), otherKey: otherKey === 1 };
      return { kind, fence: Number(fence), earlier };
    }
    case 'completed':
      return { kind, status: Number(facts[0]), sealed: String(facts[1]) };
    case 'in_flight':
    case 'session_busy':
      return { kind, ageMs: Number(facts[0]), leaseLeftMs: Number(facts[1]) };
    case 'conflict':
      return { kind };
    default:
      throw new LedgerCorruption('unknown reply to a claim of a checkout operation');
  }
}

/** The reply of checkout-finish.lua. @throws LedgerCorruption */
function finishedOf(reply: unknown): boolean {
  const [kind] = parts(reply);
  if (kind !== 'done' && kind !== 'fenced')
    throw new LedgerCorruption('unknown reply to the end of a checkout operation');
  return kind === 'done';
}

const WHYS: ReadonlySet<unknown> = new Set(UNKNOWNS);

/** @throws LedgerCorruption */
function whyOf(why: unknown): Unknown {
  if (!WHYS.has(why)) throw new LedgerCorruption('unknown end of a checkout operation');
  return why as Unknown;
}
