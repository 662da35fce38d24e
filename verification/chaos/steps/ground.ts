import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Buyer, createBuyer } from '../../../spec/support/buyer.ts';
import { type Chain, startChain } from '../../../spec/support/chain.ts';
import { startFacilitator } from '../../../spec/support/facilitator.ts';
import { type Merchant, startMerchant } from '../../../spec/support/merchant.ts';
import { startRedis, type TestRedis } from '../../../spec/support/redis.ts';

/**
 * What the gateways of one file stand on. Each site has its own payee and its own store, so they do
 * not meet.
 */
export interface Ground {
  readonly chain: Chain;
  readonly merchant: Merchant;
  readonly redis: TestRedis;
  /** The official facilitator. */
  readonly facilitatorUrl: string;
  readonly buyer: Buyer;
  /** For SQLite files and configurations. */
  readonly directory: string;
  /** What else has to end with the ground, whatever becomes of the test that began it. */
  keep(end: () => Promise<unknown>): void;
  stop(): Promise<void>;
}

/** Starts everything that is shared, in about two seconds. */
export async function startGround(): Promise<Ground> {
  const running: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const end of running.splice(0).reverse()) await end();
  };
  try {
    const directory = await mkdtemp(join(tmpdir(), 'acg-steps-'));
    running.push(() => rm(directory, { recursive: true, force: true }));
    const chain = await startChain();
    running.push(chain.stop);
    const merchant = await startMerchant();
    running.push(merchant.stop);
    // With `everysec` a write may wait behind an fsync that still runs, and `kill -9` takes it
    // along.
    const redis = await startRedis({ args: ['--appendfsync', 'always'] });
    running.push(redis.stop);
    const facilitator = await startFacilitator(chain);
    running.push(facilitator.stop);
    const buyer = await createBuyer(chain);
    const keep = (end: () => Promise<unknown>) => void running.push(end);
    return { chain, merchant, redis, facilitatorUrl: facilitator.url, buyer, directory, keep, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
