/** What the gateways of one file of deaths share: chain, backend, Redis, facilitator and buyer. */

import { type Buyer, createBuyer } from '../../../spec/support/buyer.ts';
import { startFacilitator } from '../../../spec/support/facilitator.ts';
import { startRedis, type TestRedis } from '../../../spec/support/redis.ts';
import { type SampleBackend, startSampleBackend } from '../../../spec/support/sample-backend.ts';
import { type Chain, startChain } from '../../../tools/local-world/chain.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';

/**
 * All that the gateways share. Each site has its own payee and its own store, so they do not affect
 * each other.
 */
export interface Ground {
  readonly chain: Chain;
  readonly merchant: SampleBackend;
  readonly redis: TestRedis;
  /** The official facilitator. */
  readonly facilitatorUrl: string;
  readonly buyer: Buyer;
  /** For SQLite files and configurations. */
  readonly directory: string;
  /** Registers an end for `stop`, which runs even when its test fails. */
  keep(end: () => Promise<unknown>): void;
  stop(): Promise<void>;
}

/** Starts everything that is shared, in about two seconds. */
export async function startGround(): Promise<Ground> {
  await using ends = new AsyncDisposableStack();
  const directory = await temporaryDirectory(ends, 'acg-steps-');
  const chain = ends.adopt(await startChain(), ({ stop }) => stop());
  const backend = ends.adopt(await startSampleBackend(), ({ stop }) => stop());
  // With `everysec` a write may wait behind an fsync that still runs, and `kill -9` takes it along.
  const redis = ends.adopt(await startRedis({ args: ['--appendfsync', 'always'] }), ({ stop }) => stop());
  const facilitator = ends.adopt(await startFacilitator(chain), ({ stop }) => stop());
  const buyer = await createBuyer(chain);
  const kept = ends.use(new AsyncDisposableStack());
  const keep = (end: () => Promise<unknown>): void => kept.defer(async () => void (await end()));
  const started = ends.move();
  const stop = (): Promise<void> => started.disposeAsync();
  return { chain, merchant: backend, redis, facilitatorUrl: facilitator.url, buyer, directory, keep, stop };
}
