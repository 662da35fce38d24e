/** Gateway processes of one merchant over one Redis, for specs of the event stream. */

import { randomBytes } from 'node:crypto';
import type { Store } from '../../src/store/documents/store.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import type { ConfigObject } from '../support/config.ts';
import { type GatewayProcess, prepareGateway } from '../support/gateway-process.ts';
import { startRedis } from '../support/redis.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';

/** What runs, and what a spec needs to talk to it. */
export interface Replicas {
  readonly gateways: readonly GatewayProcess[];
  readonly token: string;
  readonly chain: Chain;
  readonly backend: SampleBackend;
  /** A connection of the spec to the store of the gateways. */
  readonly store: Store;
  stop(): Promise<void>;
}

/** Starts `count` of them. `execArgv`: for Node itself. */
export async function startReplicas(
  count: number,
  options: { readonly execArgv?: readonly string[]; readonly overrides?: ConfigObject } = {},
): Promise<Replicas> {
  const { execArgv = [], overrides = {} } = options;
  await using ends = new AsyncDisposableStack();
  const directory = await temporaryDirectory(ends, 'acg-replicas-');
  const redis = ends.adopt(await startRedis(), ({ stop }) => stop());
  const chain = ends.adopt(await startChain(), ({ stop }) => stop());
  const backend = ends.adopt(await startSampleBackend(), ({ stop }) => stop());
  const limits = { eventsMaxLength: 10_000, receiptsMaxLength: 100 };
  const opening = openRedisStore({ url: redis.url, merchantId: 'market-shop', limits });
  const store = ends.adopt(await opening, ({ close }) => close());
  const token = randomBytes(24).toString('base64url');
  const storage = { redis: { url: redis.url } };
  const parts = { backendUrl: backend.url, chain, storage, adminToken: token, overrides };
  const gateways = await Promise.all(
    Array.from({ length: count }, async () => {
      const prepared = await prepareGateway(directory, { ...parts, facilitator: { mode: 'local' } });
      return ends.adopt(await prepared.start({ execArgv }), async ({ stop }) => void (await stop()));
    }),
  );
  const started = ends.move();
  return { gateways, token, chain, backend, store, stop: () => started.disposeAsync() };
}
