/** Hunts that need a Redis which loses replies or memory. */

import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { eventually } from '../../../spec/support/records.ts';
import { startRedis } from '../../../spec/support/redis.ts';
import { startTcpProxy } from '../../../spec/support/tcp-proxy.ts';
import { redisKeys } from '../../../src/store/redis/keys.ts';
import { ask, insist, signedCall } from '../steps/buyer.ts';
import { purchaseOf } from '../steps/purchases.ts';
import { openSite } from '../steps/site.ts';
import { assertAsked, type Stage } from './stage.ts';

/** The reply to the write of a failed delivery is lost on its way. */
export async function dropReply(stage: Stage): Promise<void> {
  const { ground } = stage;
  const line = stage.keep(await startTcpProxy({ path: ground.redis.socketPath }));
  const site = await openSite(ground, { store: 'redis', rail: 'local', redisUrl: `redis://127.0.0.1:${line.port}` });
  await stage.start(site);
  const call = await signedCall(ground, site, 'failing_post', { status: 500 });
  let isLost = false;
  void line.loseReply('"to":"undelivered"').then(() => {
    isLost = true;
  });
  const response = await ask(call, site.baseUrl);
  assert.equal(response.error?.code, 'BACKEND_ERROR', response.text);
  assert.ok(isLost, 'the reply was lost');
  const store = await site.openStore();
  const record = await store.ledger.read(call.payId);
  await store.close();
  const failures = await eventually(async () => {
    const events = await site.events('backend.failed');
    return events.length > 0 ? events.length : undefined;
  }, 'an event');
  assert.deepEqual(
    { tries: record?.tries, failures },
    { tries: 1, failures: 1 },
    'a write whose reply was lost counts once',
  );
}

const FILLER = Buffer.alloc(50_000);
const MOST_FILLERS = 5_000;
/** Memory limit: a little more than Redis itself needs, bytes. */
const MAXMEMORY = '8mb';

/** Another client fills the memory of Redis, and frees it again. */
export async function evict(stage: Stage): Promise<void> {
  const { maxmemoryPolicy = 'noeviction' } = stage.build;
  const args = ['--maxmemory', MAXMEMORY, '--maxmemory-policy', maxmemoryPolicy];
  const redis = stage.keep(await startRedis({ args }));
  const ground = { ...stage.ground, redis };
  const site = await openSite(ground, { store: 'redis', rail: 'local' });
  await stage.start(site);
  const purchase = purchaseOf('plain POST');
  const call = await signedCall(ground, site, purchase.resourceId, purchase.input);
  assert.equal((await insist(call, site.baseUrl)).status, 200);

  await fillUp(redis.socketPath, redisKeys(site.merchantId).payment(call.payId));
  const response = await insist(call, site.baseUrl);
  assertAsked(ground, purchase, 1, 'a full memory forgets no payment');
  assert.equal(response.error?.details?.state, 'delivered', response.text);
}

/** Writes until Redis refuses a write or has evicted the key, and then deletes all it wrote. */
async function fillUp(socketPath: string, key: string): Promise<void> {
  const redis = new Redis(socketPath);
  const names: string[] = [];
  try {
    while (names.length < MOST_FILLERS && (await redis.exists(key)) === 1) {
      const name = `filler:${names.length}`;
      names.push(name);
      if (!(await redis.set(name, FILLER).catch(() => undefined))) break;
    }
    assert.ok(names.length < MOST_FILLERS, 'the memory is full');
    await redis.del(names);
  } finally {
    redis.disconnect();
  }
}
