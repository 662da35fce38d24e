/**
 * What a claim and its end cost in Redis, beside the least that could be written: `SET NX` and
 * `SET`. Both in turn, so that a busy machine slows them alike. Prints the median of a pair,
 * microseconds, and the ratio. Argument: how many pairs.
 */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { startRedis } from '../support/redis.ts';
import { checkoutClaim, holdOf, LONG_MS } from './checkout-samples.ts';

const WARM_UP = 500;
/** As long as a sealed session of some lines. */
const SEALED = 'x'.repeat(1_516);
const pairs = Number(process.argv[2] ?? 5_000);

const server = await startRedis({ args: ['--appendonly', 'no'] });
const redis = new Redis({ path: server.socketPath });
const store = await openRedisStore({
  url: server.url,
  merchantId: 'shop',
  limits: { eventsMaxLength: 10, receiptsMaxLength: 10 },
});

const contestants: Readonly<Record<string, () => Promise<void>>> = {
  'SET NX + SET': async () => {
    const key = randomUUID();
    await redis.set(key, 'P', 'PX', LONG_MS, 'NX');
    await redis.set(key, SEALED, 'PX', LONG_MS);
  },
  'claim + finish': () => claimAndFinish(undefined),
  'claim + finish, with a session': () => claimAndFinish(checkoutClaim().lock),
};

async function claimAndFinish(lock: string | undefined): Promise<void> {
  const claim = checkoutClaim({ lock });
  await store.checkouts.claim(claim);
  await store.checkouts.finish(holdOf(claim), { status: 200, sealed: SEALED, keepMs: LONG_MS });
}

try {
  const times = new Map(Object.keys(contestants).map((name) => [name, [] as number[]]));
  for (let i = -WARM_UP; i < pairs; i += 1)
    for (const [name, work] of Object.entries(contestants)) {
      const start = performance.now();
      await work();
      if (i >= 0) times.get(name)?.push((performance.now() - start) * 1_000);
    }
  const medians = [...times].map(([name, all]) => ({ name, median: all.sort((a, b) => a - b)[all.length >> 1] ?? 0 }));
  const least = medians[0]?.median ?? 1;
  for (const { name, median } of medians)
    process.stdout.write(`${name}: ${median.toFixed(0)} us, ${(median / least).toFixed(2)} x\n`);
} finally {
  redis.disconnect();
  await store.close();
  await server.stop();
}
