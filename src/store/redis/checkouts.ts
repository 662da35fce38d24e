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

const DONE = 1;

/**
 * Claims of checkout operations. `replicated`: as for the ledger; a claim or an answer that a
 * failover forgot would be made again, so the merchant is not called, and the caller not told,
 * before a replica has it.
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
      const bytes = unopened === undefined ? undefined : Buffer.from(unopened);
      return claimedOf(await guarded(CHECKOUT_CLAIM, { keys: keysOf(claim), plan, bytes }));
    },
    async finish(hold, { status, sealed, keepMs }) {
      assertHold(hold);
      assertSealedAnswer({ status, sealed, keepMs });
      const plan = { ...planOf(hold), status, keepMs, refused: isRefusal(status) };
      const bytes = Buffer.from(sealed);
      return finishedOf(await guarded(CHECKOUT_FINISH, { keys: keysOf(hold), plan, bytes }));
    },
    async unknown(hold, end) {
      assertHold(hold);
      assertUnknownEnd(end);
      const { why, keepMs } = end;
      return (
        (await run(redis, CHECKOUT_UNKNOWN, { keys: keysOf(hold), plan: { ...planOf(hold), why, keepMs } })) === DONE
      );
    },
    async release(hold) {
      assertHold(hold);
      return (await run(redis, CHECKOUT_RELEASE, { keys: keysOf(hold), plan: planOf(hold) })) === DONE;
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

function planOf({ name, fingerprint, owner, token }: Hold) {
  return { name, fingerprint, owner, token };
}

/** The reply of checkout-claim.lua: kind, and what belongs to it. @throws LedgerCorruption */
function claimedOf(reply: unknown): Claimed {
  const [kind, ...told] = parts(reply);
  switch (kind) {
    case 'first':
      return { kind, token: Number(told[0]) };
    case 'again': {
      const [token, why, sinceMs, other] = told;
      return { kind, token: Number(token), why: whyOf(why), sinceMs: Number(sinceMs), other: other === 1 };
    }
    // Not `done`: that is a write, and waits for a replica.
    case 'kept':
      return { kind: 'done', status: Number(told[0]), sealed: String(told[1]) };
    case 'in_flight':
    case 'session_busy':
      return { kind, ageMs: Number(told[0]), leftMs: Number(told[1]) };
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
