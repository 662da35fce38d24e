import type { GatewayProcess } from '../../../spec/support/gateway-process.ts';
import { insist } from './agent.ts';
import { errandFor, KEYED_OPERATIONS } from './errand.ts';
import type { Ground, SiteParts } from './ground.ts';

/**
 * A gateway that runs beside others on the same Redis, and has compiled what it compiles at its
 * first calls: they stop it for a while.
 */
export async function startReplica(ground: Ground, parts?: Pick<SiteParts, 'timeoutMs'>): Promise<GatewayProcess> {
  const site = await ground.site({ store: 'redis', ...parts });
  const gateway = await site.start();
  for (const operation of KEYED_OPERATIONS) await insist(await errandFor(ground, operation), site.baseUrl);
  return gateway;
}
