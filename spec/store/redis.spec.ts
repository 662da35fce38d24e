import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { Redis } from 'ioredis';
import type { EventBatch } from '../../src/events/event.ts';
import { MAX_KEPT_BYTES, type PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { costs } from '../../src/store/redis/setup.ts';
import { claimOf, useOf } from '../mandates/register/register-map.ts';
import { event, holder, keptAnswer, move, receipt, recordIn, terms } from '../payments/ledger/samples.ts';
import { startRedis } from '../support/redis.ts';
import { until } from '../support/redis-replicas.ts';
import { checkoutClaim } from './checkout-samples.ts';
import { leastRights, OPTIONAL_RIGHTS } from './least-rights.ts';
import { done, LEASE_MS } from './opened.ts';
import { REDIS_LIMITS, redisBed, TAG } from './redis-bed.ts';

const HOUR_MS = 3_600_000;

const bed = redisBed();

describe('the data in Redis', () => {
  it('every key is under one hash tag', async () => {
    const record = await bed.reserved();
    const carried = { receipt: receipt(record.receiptId, record.requestId), events: [event('payment.verified', 'r')] };
    await bed.store.ledger.advance(move(record, 'settling', carried));
    await bed.store.feed.append([event('resource.requested', 'r')]);
    await bed.store.secrets.agree('secret', 'value');
    await bed.store.check();
    const keys = await bed.redis.keys('*');
    assert.ok(keys.length >= 7);
    assert.deepEqual(
      keys.filter((key) => !key.startsWith(TAG)),
      [],
    );
  });

  it('a record is kept for 25 hours from its last change or the end of its validity, renewed by every change', async () => {
    const expired = await bed.reserved(terms(randomUUID(), { validBefore: 1 }));
    const valid = await bed.reserved(terms(randomUUID(), { validBefore: Math.floor(Date.now() / 1_000) + 7_200 }));
    const hours = async (payId: string) => (await bed.redis.pttl(`${TAG}pay:${payId}`)) / HOUR_MS;
    const near = (actual: number, wanted: number) => assert.ok(Math.abs(actual - wanted) < 0.01, `${actual} hours`);
    near(await hours(expired.payId), 25);
    near(await hours(valid.payId), 27);
    await bed.redis.pexpire(`${TAG}pay:${expired.payId}`, HOUR_MS);
    await bed.store.ledger.note({ ...holder(expired), leaseMs: LEASE_MS });
    near(await hours(expired.payId), 25);
  });

  it('the score of the work list is always the time when a record is due, and final ones are not on it', async () => {
    const record = await bed.reserved();
    const { ledger } = bed.store;
    const score = async () => Number((await bed.redis.zscore(`${TAG}open`, record.payId)) ?? 0);
    const due = async (wanted: (now: PaymentRecord) => number) => {
      const now = (await ledger.read(record.payId)) ?? assert.fail('gone');
      assert.deepEqual([now.dueAt, await score()], [wanted(now), wanted(now)]);
    };
    await due((now) => now.leaseUntil);
    const held = done(await ledger.advance(move(record, 'settling', { leaseMs: 5_000, againMs: 300 })));
    await due((now) => now.leaseUntil + 300);
    assert.equal(await ledger.renew(held, 7_000), true);
    await due((now) => now.leaseUntil);
    assert.notEqual((await ledger.read(record.payId))?.leaseUntil, held.leaseUntil);
    await ledger.note({ ...holder(held), leaseMs: 0, againMs: HOUR_MS });
    await due((now) => now.changedAt + HOUR_MS);
    await ledger.advance(move(held, 'refused', { facts: { evidence: 'expired', reason: 'authorization_expired' } }));
    await due(() => 0);
  });

  it('an expired record leaves the list of unpaid work when that is read, and hides no other', async () => {
    const refused = async () => {
      const worked = done(await bed.store.ledger.advance(move(await bed.reserved(), 'worked')));
      return done(await bed.store.ledger.advance(move(worked, 'refused')));
    };
    const [oldest, old, damaged] = [await refused(), await refused(), await refused()];
    const gone = [await refused(), await refused(), await refused()];
    for (const { payId } of gone) await bed.redis.del(`${TAG}pay:${payId}`);
    await bed.damage(`pay:${damaged.payId}`);
    // One time for each, in the order in which they were made.
    for (const [n, { payId }] of [oldest, old, damaged, ...gone].entries())
      await bed.redis.zadd(`${TAG}unpaid`, 10 ** 13 + n, payId);
    const listed = (await bed.store.ledger.unpaid(2)).map(({ payId }) => payId);
    assert.deepEqual(listed, [old.payId, oldest.payId]);
    for (const { payId } of gone) assert.equal(await bed.redis.zscore(`${TAG}unpaid`, payId), null);
    for (const { payId } of [oldest, old, damaged]) {
      await bed.redis.zrem(`${TAG}unpaid`, payId);
      await bed.redis.del(`${TAG}pay:${payId}`);
    }
  });

  it('an expired record leaves the work list when it is due, and hides no other', async () => {
    const [gone, damaged, due] = [await bed.reserved(), await bed.reserved(), await bed.reserved()];
    for (const record of [gone, damaged, due]) await bed.store.ledger.note({ ...holder(record), leaseMs: 0 });
    await bed.redis.del(`${TAG}pay:${gone.payId}`);
    await bed.damage(`pay:${damaged.payId}`);
    for (const { payId } of [gone, damaged]) await bed.redis.zadd(`${TAG}open`, 1, payId);
    const found = (await bed.store.ledger.due(1)).map(({ payId }) => payId);
    assert.equal(found.length, 1);
    const all = (await bed.store.ledger.due(1_000)).map(({ payId }) => payId);
    assert.ok(all.includes(due.payId) && !all.includes(gone.payId) && !all.includes(damaged.payId));
    assert.equal(await bed.redis.zscore(`${TAG}open`, gone.payId), null);
    assert.notEqual(await bed.redis.zscore(`${TAG}open`, damaged.payId), null);
    await bed.redis.del(`${TAG}pay:${damaged.payId}`);
  });

  it('a kept answer has its own time to live, and no later state makes it longer', async () => {
    const record = await bed.reserved();
    const { ledger } = bed.store;
    const left = () => bed.redis.pttl(`${TAG}res:${record.payId}`);
    const body = Buffer.from([0, 10, 255, 13, 10, 0xc3, 0x28]);
    const answer = { status: 200, headers: { 'content-type': 'x/y', 'set-cookie': ['a', 'b'] }, body };
    await ledger.advance(move(record, 'settling', { keeping: { answer, forMs: HOUR_MS } }));
    assert.deepEqual(await ledger.kept(record.payId), { ...answer, body: new Uint8Array(body) });
    const before = await left();
    assert.ok(before > HOUR_MS - 10_000 && before <= HOUR_MS, `${before} ms`);
    await ledger.advance(move(record, 'refused', { facts: { evidence: 'unsent', reason: 'no' } }));
    assert.ok((await left()) <= before);
  });

  it('a delivery counts from when it was done, however long its write waited for others', async () => {
    const { ledger } = bed.store;
    const reserve = { terms: terms(), owner: randomUUID(), leaseMs: LEASE_MS };
    const settling = done(await ledger.advance(move(recordIn(await ledger.reserve(reserve)), 'settling')));
    const settled = done(await ledger.advance(move(settling, 'settled')));
    const seen = done(await ledger.note({ ...holder(settled), facts: { sending: 'begun' }, leaseMs: LEASE_MS }));
    const delivered = ledger.advance(move(seen, 'delivered', { seen }));
    // No timer and no other change runs in this turn, so the write waits for the next reservation.
    const until = performance.now() + 9;
    while (performance.now() < until);
    const again = await ledger.reserve(reserve);
    assert.ok(again.kind === 'completed' && again.endedMs >= 8, JSON.stringify(again));
    assert.deepEqual(again.record, done(await delivered));
  });

  it('an answer that is too large to keep is refused before anything is written', async () => {
    const record = await bed.reserved();
    const keeping = { answer: { status: 200, headers: {}, body: new Uint8Array(MAX_KEPT_BYTES + 1) }, forMs: 1 };
    await assert.rejects(bed.store.ledger.advance(move(record, 'settling', { keeping })), RangeError);
    assert.equal((await bed.store.ledger.read(record.payId))?.state, 'reserved');
  });

  it('leases are measured by the clock of Redis, whatever the clock of the pod shows', async (t) => {
    t.mock.method(Date, 'now', () => 0);
    const record = await bed.reserved(terms(randomUUID(), { validBefore: 2_000_000_000 }));
    const [seconds] = await bed.redis.time();
    const leftMs = record.leaseUntil - Number(seconds) * 1_000;
    assert.ok(leftMs > LEASE_MS - 5_000 && leftMs <= LEASE_MS + 1_000, `${leftMs} ms`);
  });

  it('a damaged record is reported, not used', async () => {
    const record = await bed.reserved();
    await bed.damage(`pay:${record.payId}`);
    const corruption = { name: 'LedgerCorruption', message: new RegExp(`pay:${record.payId}`) };
    await assert.rejects(bed.store.ledger.read(record.payId), corruption);
    await assert.rejects(bed.store.ledger.advance(move(record, 'settling')), corruption);
  });

  it('scripts that the server forgot are sent again', async () => {
    await bed.redis.script('FLUSH');
    assert.equal((await bed.reserved()).fence, 1);
  });

  it('a batch of events that is repeated is appended once; the next one follows', async () => {
    const requestId = randomUUID();
    const feed: { append(events: readonly object[], batch: EventBatch): Promise<void> } = bed.store.feed;
    const batch = { queue: randomUUID(), sequence: 1 };
    const events = [event('resource.requested', requestId)];
    await feed.append(events, batch);
    await feed.append(events, batch);
    await feed.append([event('resource.delivered', requestId)], { ...batch, sequence: 2 });
    const page = await bed.store.feed.page({ limit: 10, requestId });
    assert.deepEqual(
      page.events.map(({ type }) => type),
      ['resource.delivered', 'resource.requested'],
    );
  });
});

describe('the rights of the gateway in Redis', () => {
  it('the least ones are enough, and each of them is used', async () => {
    const guarded = await startRedis({ args: ['--user', 'default', 'on', 'nopass', ...leastRights('shop')] });
    const own = await openRedisStore({
      url: guarded.url,
      merchantId: 'shop',
      replicas: 2,
      limits: { ...REDIS_LIMITS, receiptsMaxLength: 1, receiptsMaxAgeMs: HOUR_MS },
    });
    const { ledger, feed, receipts, mandates, secrets, checkouts, work } = own;
    const take = async () => recordIn(await ledger.reserve({ terms: terms(), owner: 'buyer', leaseMs: LEASE_MS }));
    const first = await take();
    assert.deepEqual(await ledger.discard(holder(first), []), { kind: 'gone' });
    for (const record of [await take(), await take()]) {
      const carried = {
        receipt: receipt(record.receiptId, 'r', { delivered: true }),
        events: [event('payment.verified', 'r')],
        keeping: { answer: keptAnswer(), forMs: HOUR_MS },
      };
      assert.equal((await ledger.advance(move(record, 'worked', carried))).kind, 'done');
      assert.deepEqual(await ledger.kept(record.payId), keptAnswer());
      // No replica is there.
      await assert.rejects(ledger.advance(move(record, 'settling')), StoreError);
    }
    await assert.rejects(mandates.reserve('call', claimOf('a', { open: [useOf('o')] })), StoreError);
    await mandates.finish('call', 'release');
    await assert.rejects(checkouts.claim(checkoutClaim()), StoreError);
    await feed.append([event('resource.requested', 'r')]);
    assert.equal((await feed.page({ limit: 5 })).events.length, 3);
    assert.equal((await feed.after('evt_0-0', 5)).entries.length, 3);
    const tail = feed.tail();
    const read = tail.read(await feed.newest(), 5);
    const redis = new Redis({ path: guarded.socketPath });
    await until(async () => (await redis.info('clients')).includes('blocked_clients:1'), 'the tail does not wait');
    await feed.append([event('backend.called', 'r')]);
    assert.equal((await read).entries.length, 1);
    tail.close();
    await own.tidy();
    assert.equal((await receipts.page({ limit: 5, requestId: 'r' })).receipts.length, 1);
    assert.deepEqual(await receipts.counts(), { done: 1, owed: 0, uncertain: 0 });
    assert.equal((await own.census?.())?.open, 2);
    assert.equal(await work?.take('call', [['payer', 1]], HOUR_MS), undefined);
    await work?.leave('call', ['payer'], { name: 'call', forMs: HOUR_MS });
    await work?.free('call');
    assert.deepEqual(await work?.listed('payer', 5), []);
    for (const value of ['one', 'two']) assert.equal(await secrets.agree('name', value), 'one');
    assert.equal((await own.check()).status, 'degraded');
    const stranger = await openRedisStore({ url: guarded.url, merchantId: 'other', limits: REDIS_LIMITS });
    await assert.rejects(stranger.ledger.read(terms().payId), StoreError);
    await Promise.all([own.close(), stranger.close()]);

    const used = await redis.info('commandstats');
    redis.disconnect();
    const unused = leastRights('shop').filter((right) => {
      return right.startsWith('+') && !used.includes(`cmdstat_${right.slice(1)}:`);
    });
    // With a password; by doctor; by a server that forgot a script.
    assert.deepEqual(unused, ['+auth', '+ping', '+eval']);
    await guarded.stop();
  });

  for (const [args, rights, warning] of [
    [['--appendfsync', 'everysec'], OPTIONAL_RIGHTS, /^appendfsync everysec: a power cut forgets .* the last second/],
    [['--appendfsync', 'no'], OPTIONAL_RIGHTS, /^appendfsync no: a power cut forgets .* half a minute/],
    [['--appendfsync', 'everysec'], [], /^appendfsync cannot be read \(CONFIG GET is not allowed\)/],
    [['--appendfsync', 'always'], OPTIONAL_RIGHTS, undefined],
    [['--appendonly', 'no'], OPTIONAL_RIGHTS, undefined],
  ] as const)
    it(`${args.join(' ')}${rights.length === 0 ? ' that CONFIG GET does not show' : ''}: the log has ${warning ?? 'no line'}`, async (t) => {
      const server = await startRedis({
        args: [...args, '--user', 'default', 'on', 'nopass', ...leastRights('shop'), ...rights],
      });
      t.after(() => server.stop());
      const redis = new Redis({ path: server.socketPath, enableReadyCheck: false });
      t.after(() => redis.disconnect());
      const found = await costs(redis, TAG);
      assert.equal(found.length, warning === undefined ? 0 : 1);
      if (warning === undefined) return;
      assert.match(found[0] ?? '', warning);
      const lines: string[] = [];
      const warn = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
      const log = { info: () => undefined, warn };
      const store = await openRedisStore({ url: server.url, merchantId: 'shop', limits: REDIS_LIMITS, log });
      t.after(() => store.close());
      while (lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      assert.deepEqual(lines, [`redis answers before it has written to disk ${JSON.stringify({ forgets: found })}`]);
      assert.deepEqual(await store.check(), { status: 'ok' });
    });

  it('a server that does not show its settings is not called weak for that', async (t) => {
    const secretive = await startRedis({
      args: ['--appendonly', 'no', '--user', 'default', 'on', 'nopass', ...leastRights('shop'), '-info'],
    });
    t.after(() => secretive.stop());
    const own = await openRedisStore({ url: secretive.url, merchantId: 'shop', limits: REDIS_LIMITS });
    t.after(() => own.close());
    assert.deepEqual(await own.check(), { status: 'ok' });
  });
});
