import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_DOCUMENT_BYTES } from '../../src/checkouts/operations.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { until } from '../support/redis-replicas.ts';
import { checkoutClaim, FIRST, grantedAfter, holdOf, LONG_MS, nextOf, timeless } from './checkout-samples.ts';
import { lossyStore } from './lossy-store.ts';
import { redisBed, TAG } from './redis-bed.ts';

const HOUR_MS = 3_600_000;
/** Longest that a test may need until it looks, milliseconds. */
const SLOW_MS = 10_000;
const ANSWER = { status: 200, sealed: 'k1.sealed', keepMs: 3 * HOUR_MS };
const TIMEOUT = { why: 'timeout', keepMs: 5 * HOUR_MS } as const;

const bed = redisBed();

/** The data of a claim and of its session. */
async function lying({ name, lock }: { readonly name: string; readonly lock: string | undefined }): Promise<unknown> {
  return { record: await bed.held(`acp:idem:${name}`), lock: await bed.held(`acp:lock:${lock}`) };
}

async function livesFor(key: string, wanted: number): Promise<void> {
  const left = await bed.redis.pttl(`${TAG}acp:${key}`);
  assert.ok(left > wanted - SLOW_MS && left <= wanted, `${key} lives ${left} ms, not ${wanted}`);
}

describe('the data of checkout operations in Redis', () => {
  it('expires, the key and the session, after the time of each state', async () => {
    const { claim, finish, unknown, release } = bed.store.checkouts;
    const one = checkoutClaim({ leaseMs: HOUR_MS, keepMs: HOUR_MS });
    const keys = [`idem:${one.name}`, `lock:${one.lock}`];
    await claim(one);
    for (const key of keys) await livesFor(key, 2 * HOUR_MS);
    await unknown(holdOf(one), TIMEOUT);
    for (const key of keys) await livesFor(key, 5 * HOUR_MS);
    const two = nextOf(one);
    await claim(two);
    for (const key of keys) await livesFor(key, 5 * HOUR_MS);
    await release(holdOf(two, 2));
    for (const key of keys) await livesFor(key, 5 * HOUR_MS);
    const three = nextOf(one);
    await claim(three);
    await finish(holdOf(three, 3), ANSWER);
    await livesFor(`idem:${one.name}`, 3 * HOUR_MS);
    assert.equal(await bed.redis.exists(`${TAG}acp:lock:${one.lock}`), 0);
  });

  it('is deleted by a release of the first attempt', async () => {
    const one = checkoutClaim();
    await bed.store.checkouts.claim(one);
    await bed.store.checkouts.release(holdOf(one));
    assert.deepEqual(await lying(one), { record: undefined, lock: undefined });
  });

  it('is measured by the clock of Redis, not by that of the pod', async (t) => {
    t.mock.method(Date, 'now', () => 0);
    const one = checkoutClaim({ leaseMs: HOUR_MS });
    await bed.store.checkouts.claim(one);
    const [seconds] = await bed.redis.time();
    const { leaseUntil } = (await bed.held(`acp:idem:${one.name}`)) as { readonly leaseUntil: number };
    const left = leaseUntil - Number(seconds) * 1_000;
    assert.ok(left > HOUR_MS - SLOW_MS && left <= HOUR_MS + 1_000, `${left} ms`);
  });

  it('has no answer any more once that could not be opened and the operation runs again', async () => {
    const { claim, finish } = bed.store.checkouts;
    const one = checkoutClaim();
    await claim(one);
    await finish(holdOf(one), ANSWER);
    await claim(nextOf(one, { unopened: ANSWER.sealed }));
    assert.partialDeepStrictEqual(await lying(one), { record: { state: 'P', fence: 2 } });
    assert.doesNotMatch(JSON.stringify(await lying(one)), /sealed/);
  });
});

describe('a command about a checkout operation whose reply is lost, sent again', () => {
  const over = lossyStore(bed);

  it('claims once: the same attempt is granted, and no other', async () => {
    const { claim } = over.store.checkouts;
    const first = checkoutClaim();
    await over.lost(() => claim(first));
    assert.deepEqual(await claim(nextOf(first)).then(timeless), { kind: 'in_flight' });
    assert.deepEqual(await claim(first), FIRST);
    await over.store.checkouts.unknown(holdOf(first), TIMEOUT);
    const next = nextOf(first);
    await over.lost(() => claim(next));
    assert.deepEqual(timeless(await claim(next)), grantedAfter('timeout', 2));
  });

  for (const [name, end] of [
    ['finish', (one: ReturnType<typeof holdOf>) => over.store.checkouts.finish(one, ANSWER)],
    ['unknown', (one: ReturnType<typeof holdOf>) => over.store.checkouts.unknown(one, TIMEOUT)],
    ['release', (one: ReturnType<typeof holdOf>) => over.store.checkouts.release(one)],
  ] as const)
    it(`ends once: ${name}`, async () => {
      const one = checkoutClaim();
      await over.store.checkouts.claim(one);
      const before = await lying(one);
      await over.lost(() => end(holdOf(one)));
      const once = await lying(one);
      assert.notDeepEqual(once, before, 'the first one has to have arrived');
      assert.equal(await end(holdOf(one)), true);
      assert.deepEqual(await lying(one), once);
    });
});

describe('checkout operations when Redis fails', () => {
  it('are not granted by a server that is full, and what was granted ends once there is room', async () => {
    const { claim, finish } = bed.store.checkouts;
    const one = checkoutClaim();
    await claim(one);
    const largest = { ...ANSWER, sealed: 'x'.repeat(2 * MAX_DOCUMENT_BYTES) };
    await bed.redis.config('SET', 'maxmemory', '1');
    try {
      await assert.rejects(claim(checkoutClaim()), StoreError);
      await assert.rejects(finish(holdOf(one), largest), StoreError);
    } finally {
      await bed.redis.config('SET', 'maxmemory', '0');
    }
    assert.deepEqual(timeless(await claim(nextOf(one))), { kind: 'in_flight' });
    assert.equal(await finish(holdOf(one), largest), true);
    assert.partialDeepStrictEqual(await claim(nextOf(one)), { kind: 'completed', sealed: largest.sealed });
  });

  it('are refused while it is down, and what it had acknowledged is there afterwards', async () => {
    const { claim, finish, unknown, release } = bed.store.checkouts;
    const [running, done] = [checkoutClaim(), checkoutClaim()];
    for (const one of [running, done]) await claim(one);
    await finish(holdOf(done), ANSWER);
    await bed.redis.config('SET', 'appendfsync', 'always');
    await bed.redis.set('{acg:shop}:synced', '1');
    await bed.server.kill();
    await assert.rejects(claim(checkoutClaim()), StoreError);
    await assert.rejects(finish(holdOf(running), ANSWER), StoreError);
    await assert.rejects(unknown(holdOf(running), TIMEOUT), StoreError);
    await assert.rejects(release(holdOf(running)), StoreError);
    await bed.server.restart();
    await until(async () => (await bed.store.check()).status === 'ok', 'the store does not reconnect');
    assert.deepEqual(timeless(await claim(nextOf(running))), { kind: 'in_flight' });
    assert.deepEqual(await claim(nextOf(done)), { kind: 'completed', status: 200, sealed: ANSWER.sealed });
    assert.equal(await finish(holdOf(running), { ...ANSWER, keepMs: LONG_MS }), true);
  });
});
