import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { Redis } from 'ioredis';
import type { EventBatch } from '../../src/events/event.ts';
import type { PaymentFacts, PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import { fencingToken } from '../../src/payments/settlement/attempt.ts';
import { createUnpaidWork, type Place, type UnpaidRow } from '../../src/payments/settlement/places.ts';
import { receiptId } from '../../src/receipts/receipt.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { costs } from '../../src/store/redis/setup.ts';
import { claimOf, useOf } from '../mandates/claims.ts';
import {
  event,
  holder,
  keptAnswer,
  move,
  PAYMENT,
  receipt,
  recordIn,
  sha256,
  TRANSACTION,
  terms,
} from '../payments/ledger/samples.ts';
import { startRedis } from '../support/redis.ts';
import { until } from '../support/redis-replicas.ts';
import { checkoutClaim } from './contract-checkouts.ts';
import { done, granted, LEASE_MS } from './opened.ts';
import { leastRights, OPTIONAL_RIGHTS, REDIS_LIMITS, redisBed, TAG } from './redis-bed.ts';

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

  it('a damaged record is reported, not used', async () => {
    const record = await bed.reserved();
    await bed.damage(`pay:${record.payId}`);
    const corruption = { name: 'LedgerCorruption', message: new RegExp(`pay:${record.payId}`) };
    await assert.rejects(bed.store.ledger.read(record.payId), corruption);
    await assert.rejects(bed.store.ledger.advance(move(record, 'settling')), corruption);
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
    const types = page.events.map(({ type }) => type);
    assert.deepEqual(types, ['resource.delivered', 'resource.requested']);
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

async function withStore(then: (store: Store, merchantId: string) => Promise<void>, more: object = {}): Promise<void> {
  const merchantId = randomUUID();
  const store = await openRedisStore({ url: bed.server.url, merchantId, limits: { ...REDIS_LIMITS, ...more } });
  try {
    await then(store, merchantId);
  } finally {
    await store.close();
  }
}

/** Commands that the server ran meanwhile, those inside scripts and those of this test apart. */
async function sentDuring(work: () => Promise<unknown>): Promise<readonly string[]> {
  const monitor = await bed.redis.monitor();
  const seen: string[] = [];
  monitor.on('monitor', (_time: string, [name = '']: readonly string[], source: string) => {
    if (source !== 'lua') seen.push(name.toLowerCase());
  });
  await work();
  // The monitor gets commands in order: once it has this one, it has all earlier ones.
  await bed.redis.echo('end');
  while (!seen.includes('echo')) await new Promise((resolve) => setTimeout(resolve, 1));
  monitor.disconnect();
  return seen.filter((name) => name !== 'echo');
}

describe('the book of receipts in Redis', () => {
  it('reads a page of each list in two commands, or three where it is of two lists', () =>
    withStore(async ({ receipts }) => {
      const ids = Array.from({ length: 300 }, (_, i) => receiptId(1_000_000 - i));
      await receipts.write(ids.map((id, i) => receipt(id, `r${i}`, { delivered: i % 100 !== 0 })));
      for (const [query, ...commands] of [
        [{}, 'zrange', 'zrange', 'evalsha'],
        [{ delivered: false }, 'zrange', 'evalsha'],
        [{ delivered: true }, 'zrange', 'evalsha'],
        [{ requestId: 'r7' }, 'zrange', 'evalsha'],
        [{ callId: 'none' }, 'zrange'],
      ] as const)
        assert.deepEqual(await sentDuring(() => receipts.page({ limit: 50, ...query })), commands);
    }));

  it('leaves nothing of a dropped receipt behind', () =>
    withStore(
      async (store, merchantId) => {
        const { receipts } = store;
        const ids = Array.from({ length: 30 }, (_, i) => receiptId(1_000 + i));
        const metadata = { callId: 'call_1', resumedFrom: 'before' };
        for (const id of ids) {
          const payment = { ...PAYMENT, replayKey: sha256(id) };
          await receipts.write([receipt(id, 'name', { delivered: true, metadata, payment })]);
        }
        await store.tidy();
        const keys = await bed.redis.keys(`{acg:${merchantId}}:rcpt:*`);
        const lists = ['done', 'names'].map((list) => `{acg:${merchantId}}:rcpt:${list}`);
        assert.deepEqual(await Promise.all(lists.map((key) => bed.redis.zcard(key))), [10, 30]);
        assert.equal(keys.length, lists.length + 20 + 1, 'ten receipts of payments, and how far the book reaches');
      },
      { receiptsMaxLength: 10 },
    ));
});

const LIMITS = { perResource: 2, perNetwork: 50, all: 50, windowMs: 60_000 };
const ROW: UnpaidRow = {
  ...{
    at: '2026-01-01T00:00:00.000Z',
    requestId: 'one',
    callId: 'call_one',
    resourceId: 'lookup',
    channel: 'http',
    amount: '0.01',
  },
  ...{
    currency: 'USD',
    network: 'eip155:1',
    payer: '0xab',
    replayKey: 'pay',
    backendStatus: 404,
    reason: 'backend_4xx',
  },
};

describe('the budget of unpaid work, shared by the gateways of one store', () => {
  const gateway = () => createUnpaidWork(() => LIMITS, undefined, bed.store.work ?? assert.fail('shared'));
  let calls = 0;
  const callOf = (resourceId: string, payer = `0x${calls}`) => {
    calls += 1;
    return { payId: `pay ${calls}`, payer, resourceId, network: 'one', atMostMs: 60_000 };
  };
  const placed = async (entered: Promise<Place | string>): Promise<Place> => {
    const place = await entered;
    return typeof place === 'string' ? assert.fail(place) : place;
  };
  const until = async (holds: () => Promise<boolean>): Promise<void> => {
    while (!(await holds())) await new Promise(setImmediate);
  };
  const running = (holder: string) => bed.redis.zcard(`{acg:shop}:work:run:${holder}`);

  it('a gateway that died keeps no payer from the others', async () => {
    await placed(gateway().enter(callOf('report', '0xAB')));
    (await placed(gateway().enter(callOf('report', '0xab')))).leave('settled');
  });

  it('what ended unpaid at one gateway is spent at all, is listed at all, and comes free where any learns that it is paid', async () => {
    const [one, other] = [gateway(), gateway()];
    const failed = await placed(one.enter(callOf('lookup', '0xfa')));
    const call = callOf('lookup');
    (await placed(one.enter(call))).leave('unpaid');
    failed.leave({ ...ROW });
    await until(async () => (await running('resource lookup')) === 0);
    assert.equal(await other.enter(callOf('lookup')), 'exhausted');
    assert.deepEqual([other.exhausted('lookup', 'one'), other.exhausted('report', 'one')], [true, false]);
    assert.deepEqual(await other.failed(10), [ROW]);
    (await placed(other.enter(callOf('report', '0xfa')))).leave('settled');
    other.paid(call.payId);
    await until(async () => (await bed.redis.zcard('{acg:shop}:work:unpaid:resource lookup')) === 1);
    await placed(one.enter(callOf('lookup')));
  });

  it('places and unpaid calls end by themselves, and a dead gateway keeps none', async () => {
    await placed(gateway().enter({ ...callOf('brief'), atMostMs: 1 }));
    await placed(gateway().enter({ ...callOf('brief'), atMostMs: 1 }));
    (await placed(gateway().enter(callOf('brief')))).leave('settled');
    for (const key of await bed.redis.keys('{acg:shop}:work:*')) assert.ok((await bed.redis.pttl(key)) > 0, key);
  });
});

/** Commands of Redis inside the scripts of one paid call. */
const INNER_COMMANDS = 43;
/** What Redis answers to the scripts of one paid call, bytes. */
const ANSWERED_BYTES = 192;
/** Reserved, settling, settled, the mark that bytes leave, delivered. */
const STATES = 5;
const AT_ONCE = 16;

interface Cost {
  /** Scripts, each one round trip. */
  readonly scripts: number;
  readonly inner: number;
  readonly answered: number;
  readonly commands: ReadonlySet<string>;
}

/** What the server did meanwhile for others than this test's own connection. */
async function costOf(work: () => Promise<void>): Promise<Cost> {
  await bed.redis.config('RESETSTAT');
  await work();
  const info = await bed.redis.info('all');
  const calls = new Map(
    [...info.matchAll(/^cmdstat_([a-z|]+):calls=(\d+)/gm)].map(([, name = '', count]) => [name, Number(count)]),
  );
  const scripts = calls.get('evalsha') ?? 0;
  for (const own of ['evalsha', 'info', 'config|resetstat']) calls.delete(own);
  const answered = Number(/^total_net_output_bytes:(\d+)/m.exec(info)?.[1]);
  const inner = [...calls.values()].reduce((sum, count) => sum + count, 0);
  return { scripts, inner, answered, commands: new Set(calls.keys()) };
}

async function advance(
  record: PaymentRecord,
  to: 'settling' | 'settled' | 'delivered',
  facts: PaymentFacts = {},
): Promise<PaymentRecord> {
  const written = receipt(record.receiptId, record.requestId, {
    delivered: to === 'delivered',
    payment: { ...PAYMENT, replayKey: record.payId },
    metadata: { callId: `call of ${record.requestId}` },
  });
  const command = {
    ...fencingToken(record),
    to,
    leaseMs: to === 'delivered' ? 0 : LEASE_MS,
    facts,
    events: [event('payment.verified', record.requestId)],
    ...(to === 'settling' ? {} : { receipt: written }),
    ...(to === 'delivered' ? { keeping: { answer: keptAnswer('report'), forMs: 60_000 } } : {}),
  };
  return done(await bed.store.ledger.advance(command));
}

async function markedPurchase(): Promise<PaymentRecord> {
  const shown = terms(randomUUID(), { tokenDigest: sha256('token of the purchase') });
  const token = { kind: 'issued', id: sha256(randomUUID()), forMs: 60_000 } as const;
  const reserve = { terms: shown, owner: randomUUID(), leaseMs: LEASE_MS, proof: shown.payId.slice(0, 22), token };
  const settling = await advance(granted(await bed.store.ledger.reserve(reserve)), 'settling');
  const settled = await advance(settling, 'settled', { evidence: 'claim', transaction: TRANSACTION });
  return done(
    await bed.store.ledger.note({ ...fencingToken(settled), facts: { sending: 'begun' }, leaseMs: LEASE_MS }),
  );
}

describe('a paid call in Redis', () => {
  it('costs one round trip a state, no reading of whole documents, and few commands', async () => {
    const { scripts, inner, answered, commands } = await costOf(async () => {
      await advance(await markedPurchase(), 'delivered');
    });
    assert.equal(scripts, STATES);
    assert.ok(inner <= INNER_COMMANDS, `${inner} commands`);
    assert.deepEqual(
      ['get', 'mget'].filter((reading) => commands.has(reading)),
      [],
    );
    assert.ok(answered <= ANSWERED_BYTES, `${answered} bytes`);
  });

  it('is delivered in the script of all others that were delivered about then', async () => {
    const marked = await Promise.all(Array.from({ length: AT_ONCE }, markedPurchase));
    const { scripts } = await costOf(async () => {
      await Promise.all(marked.map((record) => advance(record, 'delivered')));
    });
    assert.equal(scripts, 1);
    for (const { payId } of marked) assert.equal((await bed.store.ledger.read(payId))?.state, 'delivered');
  });

  it('is on the pages of receipts and events, and a replay for its proof, while its write waits for others', async () => {
    const [one, other] = [await markedPurchase(), await markedPurchase()];
    const writes = [advance(one, 'delivered')];
    const { receipts } = await bed.store.receipts.page({ limit: 1, requestId: one.requestId });
    const deliveries = receipts.map(({ delivered }) => delivered);
    assert.deepEqual(deliveries, [true]);
    const before = await bed.store.feed.page({ limit: 10, requestId: other.requestId });
    writes.push(advance(other, 'delivered'));
    const after = await bed.store.feed.page({ limit: 10, requestId: other.requestId });
    assert.equal(after.events.length, before.events.length + 1);
    const third = await markedPurchase();
    writes.push(advance(third, 'delivered'));
    const again = await bed.store.ledger.reserve({ terms: third, owner: randomUUID(), leaseMs: LEASE_MS });
    assert.equal(again.kind, 'completed');
    await Promise.all(writes);
  });

  it('is written in the script of the others of its turn, and fails alone', async () => {
    const [damaged, ...sound] = await Promise.all(Array.from({ length: AT_ONCE }, () => bed.reserved(terms())));
    assert.ok(damaged !== undefined);
    await bed.damage(`pay:${damaged.payId}`);
    const { scripts } = await costOf(async () => {
      const [first, ...others] = await Promise.allSettled([damaged, ...sound].map((one) => advance(one, 'settling')));
      assert.equal(first?.status, 'rejected');
      for (const other of others) assert.equal(other.status, 'fulfilled');
    });
    assert.equal(scripts, 1);
  });
});

describe('a queue of events in Redis', () => {
  it('costs one round trip a batch', async () => {
    const queue = randomUUID();
    const { scripts } = await costOf(async () => {
      for (const sequence of [1, 2, 3])
        await bed.store.feed.append([event('resource.requested', randomUUID())], { queue, sequence });
    });
    assert.equal(scripts, 3);
  });
});
