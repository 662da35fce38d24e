/** Starts a replica that has compiled its schemas, because its first calls are slow. */

import type { GatewayProcess } from '../../../spec/support/gateway-process.ts';
import { insist } from './agent.ts';
import type { Ground, SiteParts } from './ground.ts';
import { callFor, KEYED_OPERATIONS } from './keyed-call.ts';

export async function startReplica(ground: Ground, parts?: Pick<SiteParts, 'timeoutMs'>): Promise<GatewayProcess> {
  const site = await ground.site({ store: 'redis', ...parts });
  const gateway = await site.start();
  for (const operation of KEYED_OPERATIONS) await insist(await callFor(ground, operation), site.baseUrl);
  return gateway;
}
