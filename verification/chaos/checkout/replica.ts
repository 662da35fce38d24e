/** A replica that has compiled its schemas: the first calls would stop it for a while. */

import type { GatewayProcess } from '../../../spec/support/gateway-process.ts';
import { insist } from './agent.ts';
import { errandFor, KEYED_OPERATIONS } from './errand.ts';
import type { Ground, SiteParts } from './ground.ts';

export async function startReplica(ground: Ground, parts?: Pick<SiteParts, 'timeoutMs'>): Promise<GatewayProcess> {
  const site = await ground.site({ store: 'redis', ...parts });
  const gateway = await site.start();
  for (const operation of KEYED_OPERATIONS) await insist(await errandFor(ground, operation), site.baseUrl);
  return gateway;
}
