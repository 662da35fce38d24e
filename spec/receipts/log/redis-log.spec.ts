import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { openSeries } from '../../../src/receipts/log/series.ts';
import { receiptId } from '../../../src/receipts/receipt.ts';
import type { Store } from '../../../src/store/port/store.ts';
import { openRedisStore } from '../../../src/store/redis/open.ts';
import { receipt } from '../../payments/ledger/samples.ts';
import { leastRights } from '../../store/least-rights.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';
import { KEY, MERCHANT, redisBed, seal, verified } from './log-bed.ts';
import { logContract } from './log-contract.ts';

const LIMITS = { eventsMaxLength: 100, receiptsMaxLength: 1 };

let server: TestRedis;
let redis: Redis;

before(async () => {
  server = await startRedis();
  redis = new Redis({ path: server.socketPath });
});
after(async () => {
  redis.disconnect();
  await server.stop();
});

logContract('redis', async () => redisBed(server.url, redis));

describe('the log of receipts in Redis', () => {
  /** Writes, drops, seals and trims, and verifies. */
  const used = async (store: Store): Promise<void> => {
    const written = Array.from({ length: 3 }, () => receipt(receiptId(), 'used', { delivered: true }));
    await store.receipts.write(written);
    await store.tidy();
    await seal(store, { maxVersions: 0 });
    await store.receipts.write([receipt(receiptId(), 'later')]);
    await seal(store, { maxVersions: 0 });
    const { findings, receipts } = await verified(store);
    assert.deepEqual({ findings, receipts }, { findings: [], receipts: 2 });
  };

  it('drops no owed receipt that stands on the list of delivered ones, and puts it back', async (t) => {
    const merchantId = 'listed';
    const store = await openRedisStore({ url: server.url, merchantId, limits: LIMITS, series: openSeries(KEY) });
    t.after(() => store.close());
    const gone = receipt(receiptId(Date.now() - 1_000), 'owed');
    await store.receipts.write([gone, receipt(receiptId(), 'done', { delivered: true })]);
    const list = (name: string) => `{acg:${merchantId}}:rcpt:${name}`;
    assert.equal(await redis.zrem(list('owed'), gone.id), 1);
    await redis.zadd(list('done'), 0, gone.id);
    await store.tidy();
    await store.tidy();
    assert.deepEqual(await store.receipts.counts(), { done: 1, owed: 1, uncertain: 0 });
    const page = await store.receipts.page({ delivered: false, limit: 10 });
    assert.deepEqual(
      page.receipts.map(({ id }) => id),
      [gone.id],
    );
    assert.deepEqual((await verified(store)).findings, []);
  });

  it('needs no more than the least rights', async (t) => {
    const guarded = await startRedis({ args: ['--user', 'default', 'on', 'nopass', ...leastRights(MERCHANT)] });
    t.after(() => guarded.stop());
    const options = { url: guarded.url, merchantId: MERCHANT, limits: LIMITS, series: openSeries(KEY) };
    const store = await openRedisStore(options);
    t.after(() => store.close());
    await used(store);
  });

  it('is in one slot of a cluster', async (t) => {
    const cluster = await startRedisCluster();
    t.after(() => cluster.stop());
    const options = {
      cluster: { nodes: cluster.nodes },
      merchantId: MERCHANT,
      limits: LIMITS,
      series: openSeries(KEY),
    };
    const store = await openRedisStore(options);
    t.after(() => store.close());
    await used(store);
  });
});
