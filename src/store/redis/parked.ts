import { LedgerCorruption } from '../../payments/ledger/invariants.ts';
import {
  MAX_CLAIMED_CALLS,
  MAX_PARKED_CALLS,
  type ParkedCalls,
  type ParkedClaim,
} from '../../payments/parked-calls.ts';
import { assertClaimant, assertParkable, isParkedName } from '../parked.ts';
import type { RedisClient } from './client.ts';
import type { RedisKeys } from './keys.ts';
import { parts } from './reply.ts';
import { CLAIM, PARK, RELEASE, run } from './script.ts';

const DONE = 1;

/** Parked calls: one hash, and beside it the ends of those that wait and of those that are claimed. */
export function redisParked(redis: RedisClient, names: RedisKeys): ParkedCalls {
  const keys = [names.parked, names.parkedWaiting, names.parkedClaimed];
  const maxWaiting = MAX_PARKED_CALLS;
  return {
    async park(name, call, forMs) {
      assertParkable(name, call, forMs);
      const plan = { name, forMs, maxWaiting, maxClaimed: MAX_CLAIMED_CALLS };
      return (await run(redis, PARK, { keys, plan, bytes: Buffer.from(call) })) === DONE;
    },
    async claim(name, claimant, forMs) {
      assertClaimant(claimant, forMs);
      if (!isParkedName(name)) return { kind: 'none' };
      return claimOf(await run(redis, CLAIM, { keys, plan: { name, claimant, forMs } }));
    },
    async release(name, claimant, forMs) {
      assertClaimant(claimant, forMs);
      if (!isParkedName(name)) return false;
      return (await run(redis, RELEASE, { keys, plan: { name, claimant, forMs, maxWaiting } })) === DONE;
    },
  };
}

/** The reply of claim.lua: kind, call. @throws LedgerCorruption */
function claimOf(reply: unknown): ParkedClaim {
  const [kind, call] = parts(reply);
  switch (kind) {
    case 'first':
    case 'again':
      return { kind: 'yours', call: String(call), again: kind === 'again' };
    case 'taken':
    case 'none':
      return { kind };
    default:
      throw new LedgerCorruption('unknown reply to a claim');
  }
}
