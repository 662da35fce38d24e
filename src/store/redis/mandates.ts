/** The register of mandates in Redis, for calls that pay nothing. */

import type { MandateClaim, MandateRegister, Used } from '../../mandates/register/register.ts';
import { SWEPT_AT_ONCE } from '../../mandates/register/register-table.ts';
import { LedgerCorruption } from '../../payments/ledger/invariants.ts';
import { assertCallName, assertClaim } from '../port/mandate-claim.ts';
import type { RedisClient } from './client.ts';
import { type RedisKeys, registerKeys } from './keys.ts';
import { runReplicated } from './replication.ts';
import { parts, refusalOf } from './reply.ts';
import { FINISH, HOLD, run } from './script.ts';

/**
 * `replicated`: as for the ledger. A failover that forgets a use would allow it again, so the
 * backend is not called before a replica has the use.
 */
export function redisMandates(
  { redis, replicated }: { readonly redis: RedisClient; readonly replicated?: RedisClient | undefined },
  names: RedisKeys,
): MandateRegister {
  const keys = [names.mandatesHeld, names.mandatesHeldEnds, ...registerKeys(names)];
  return {
    async reserve(name, claim: MandateClaim) {
      assertCallName(name);
      assertClaim(claim);
      const execution = {
        keys,
        plan: { name, sweptAtOnce: SWEPT_AT_ONCE },
        rest: [JSON.stringify(claim)],
      };
      return usedOf(
        await (replicated === undefined ? run(redis, HOLD, execution) : runReplicated(replicated, HOLD, execution)),
      );
    },
    async finish(name, how) {
      assertCallName(name);
      await run(redis, FINISH, { keys, plan: { name, how } });
    },
  };
}

/** The reply of hold.lua: kind, reason. @throws LedgerCorruption */
function usedOf(reply: unknown): Used {
  const [kind, reason] = parts(reply);
  if (kind === 'reserved') return { kind };
  if (kind === 'refused') return { kind, reason: refusalOf(reason) };
  throw new LedgerCorruption('unknown reply to a claim of a mandate');
}
