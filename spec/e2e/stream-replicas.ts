import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { type Chain, startChain } from '../support/chain.ts';
import { type ConfigObject, worldConfig, writeConfig } from '../support/config.ts';
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts';
import { startMerchant } from '../support/merchant.ts';
import { freePorts } from '../support/ports.ts';
import { startRedis } from '../support/redis.ts';

/** Several gateways of one merchant over one Redis, each in a process of its own. */
export interface Replicas {
  readonly gateways: readonly GatewayProcess[];
  readonly token: string;
  readonly chain: Chain;
  /** The test's own door to what they share. */
  readonly store: Store;
  stop(): Promise<void>;
}

/** Starts `count` of them. `execArgv`: for Node itself. */
export async function startReplicas(
  count: number,
  options: { readonly execArgv?: readonly string[]; readonly overrides?: ConfigObject } = {},
): Promise<Replicas> {
  const { execArgv = [], overrides = {} } = options;
  const running: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const end of running.splice(0).reverse()) await end();
  };
  try {
    const directory = await mkdtemp(join(tmpdir(), 'acg-replicas-'));
    running.push(() => rm(directory, { recursive: true, force: true }));
    const redis = await startRedis();
    running.push(redis.stop);
    const chain = await startChain();
    running.push(chain.stop);
    const merchant = await startMerchant();
    running.push(merchant.stop);
    const limits = { eventsMaxLength: 10_000, receiptsMaxLength: 100 };
    const store = await openRedisStore({ url: redis.url, merchantId: 'market-shop', limits });
    running.push(store.close);
    const token = randomBytes(24).toString('base64url');
    const gateways = await Promise.all(
      Array.from({ length: count }, async (_, i) => {
        const [agents = 0, management = 0] = await freePorts(2);
        const configPath = join(directory, `${i}.yaml`);
        const parts = { merchantUrl: merchant.url, chain, storage: { redis: { url: redis.url } }, adminToken: token };
        const facilitator = { mode: 'local' as const };
        await writeConfig(configPath, worldConfig({ ...parts, facilitator, ports: { agents, management }, overrides }));
        const env = { GATEWAY_DRAIN_SECONDS: '0' };
        const gateway = await startGateway({ configPath, baseUrl: `http://127.0.0.1:${agents}`, env, execArgv });
        running.push(gateway.stop);
        return gateway;
      }),
    );
    return { gateways, token, chain, store, stop };
  } catch (thrown) {
    await stop();
    throw thrown;
  }
}
