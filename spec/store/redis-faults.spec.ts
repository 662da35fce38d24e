import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Store } from '../../src/store/documents/store.ts';
import { openStore } from '../../src/store/open.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { event, holder, keptAnswer, move, receipt, recordIn, terms } from '../payments/ledger/samples.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/redis-replicas.ts';
import { standStill } from '../support/stand-still.ts';
import { done, LEASE_MS } from './opened.ts';
import { everything, lossyStore, REDIS_LIMITS, redisBed } from './redis-bed.ts';

/** Longest a caller waits for a store that is away, milliseconds. */
const PROMPT_MS = 1_000;

const bed = redisBed();

/** The promise must be refused as a StoreError, and soon. */
async function refusedPromptly(answer: Promise<unknown>): Promise<StoreError> {
  const start = performance.now();
  const error = await answer.then(
    () => assert.fail('answered'),
    (thrown: unknown) => (thrown instanceof StoreError ? thrown : assert.fail(String(thrown))),
  );
  const ms = performance.now() - start;
  assert.ok(ms < PROMPT_MS, `${ms} ms`);
  return error;
}

/** The store reconnects on its own, without an event: only `check` shows it. */
async function recovered(one: Store): Promise<void> {
  for (const deadline = Date.now() + 60_000; (await one.check()).status !== 'ok'; await delay(20))
    assert.ok(Date.now() < deadline, 'did not recover');
}

describe('when Redis fails', () => {
  it('kill -9: callers are refused within a second, what was acknowledged is there afterwards', async () => {
    const record = await bed.reserved();
    await bed.server.kill();
    const command = move(record, 'settling');
    await refusedPromptly(bed.store.ledger.advance(command));
    await refusedPromptly(bed.store.feed.page({ limit: 1 }));
    assert.equal((await bed.store.check()).status, 'unreachable');
    await bed.server.restart();
    await recovered(bed.store);
    assert.equal((await bed.store.ledger.read(record.payId))?.state, 'reserved');
    assert.equal((await bed.store.ledger.advance(command)).kind, 'done');
  });

  it('opens while the server is down, and serves as soon as it is up', async () => {
    await bed.server.kill();
    const start = performance.now();
    const late = await openRedisStore({ url: bed.server.url, merchantId: 'late', limits: REDIS_LIMITS });
    assert.ok(performance.now() - start < 2 * PROMPT_MS);
    assert.equal((await late.check()).status, 'unreachable');
    await refusedPromptly(late.ledger.read(terms().payId));
    await bed.server.restart();
    await recovered(late);
    assert.equal(await late.ledger.read(terms().payId), undefined);
    await late.close();
  });

  it('no password reaches an error or the log', async () => {
    const lines: string[] = [];
    const line = (fields: object, message: string) => {
      const { err } = fields as { readonly err?: Error };
      lines.push(`${message} ${err?.message} ${err?.stack} ${JSON.stringify(err)}`);
    };
    const url = 'redis://operator:correct-horse@127.0.0.1:1/0';
    const shut = await openRedisStore({
      url,
      merchantId: 'shop',
      limits: REDIS_LIMITS,
      log: { info: line, warn: line },
    });
    const error = await refusedPromptly(shut.ledger.read(terms().payId));
    await shut.close();
    const { cause } = error;
    assert.ok(cause instanceof Error);
    assert.equal(lines.length, 1);
    for (const text of [...lines, cause.message, JSON.stringify(cause), String(cause.stack)])
      assert.doesNotMatch(text, /correct-horse/);
  });

  it('a server that answers but takes no writes is unwritable', async () => {
    await recovered(bed.store);
    const status = await underSetting('maxmemory', '1', () => bed.store.check());
    assert.equal(status.status, 'unwritable');
    assert.deepEqual(await bed.store.check(), { status: 'ok' });
  });

  it('a server that became a replica is left for the next one, also by writes that were gathered', async () => {
    await recovered(bed.store);
    const record = await bed.reserved();
    const connections = async () => /\bid=\d+(?=.* name=acg-cmd)/.exec(String(await bed.redis.client('LIST')))?.[0];
    const before = await connections();
    assert.ok(before !== undefined);
    await bed.redis.replicaof('127.0.0.1', 1);
    try {
      await refusedPromptly(bed.store.ledger.advance(move(record, 'settling')));
      await until(async () => (await connections()) !== before, 'the connection stays');
    } finally {
      await bed.redis.replicaof('NO', 'ONE');
    }
    await recovered(bed.store);
  });

  for (const [name, value, cause] of [
    ['maxmemory-policy', 'allkeys-lru', /noeviction/],
    ['appendonly', 'no', /appendonly/],
  ] as const)
    it(`a server with ${name} ${value} is degraded, and that is logged at the start`, async (t) => {
      const log: object[] = [];
      // What it costs that the file is written once a second is another line.
      const warn = (fields: object) => void ('weak' in fields && log.push(fields));
      // The setup is looked at once a minute, so by a store that has not looked yet.
      const health = await underSetting(name, value, async () => {
        const options = { url: bed.server.url, merchantId: 'shop', limits: REDIS_LIMITS };
        const fresh = await openRedisStore({ ...options, log: { info: warn, warn } });
        t.after(() => fresh.close());
        await until(async () => log.length > 0, 'the log has no line');
        return fresh.check();
      });
      assert.equal(health.status, 'degraded');
      assert.match(health.status === 'degraded' ? health.cause : '', cause);
      assert.equal(log.length, 1);
      assert.match(JSON.stringify(log[0]), cause);
    });

  /** A setting of the server for as long as `work` takes. */
  async function underSetting<T>(name: string, value: string, work: () => Promise<T>): Promise<T> {
    const [, before = ''] = (await bed.redis.config('GET', name)) as readonly string[];
    await bed.redis.config('SET', name, value);
    try {
      return await work();
    } finally {
      await bed.redis.config('SET', name, before);
    }
  }
});

describe('a command whose answer is lost, sent again', () => {
  const over = lossyStore(bed);

  it('changes the store once: a reservation, a settlement with all that it carries, a discard, a receipt', async () => {
    const { ledger, receipts } = over.store;
    const wanted = { terms: terms(), owner: randomUUID(), leaseMs: LEASE_MS };
    const { receiptId, requestId } = wanted.terms;
    const settling = done(await bed.store.ledger.advance(move(await bed.reserved(), 'settling')));
    const settle = move(settling, 'settled', {
      receipt: receipt(settling.receiptId, settling.requestId),
      events: [event('payment.settled', settling.requestId)],
      keeping: { answer: keptAnswer(), forMs: LEASE_MS },
    });
    const reserved = holder(await bed.reserved());
    const commands = [
      async () => recordIn(await ledger.reserve(wanted)).owner === wanted.owner,
      async () => (await ledger.advance(settle)).kind === 'done',
      async () => (await ledger.discard(reserved, [event('payment.rejected', requestId)])).kind === 'gone',
      async () => (await receipts.write([receipt(receiptId, requestId)])) === undefined,
    ];
    for (const send of commands) {
      const before = await everything(bed);
      await over.lost(send);
      const once = await everything(bed);
      assert.notDeepEqual(once, before, 'the first one has to have arrived');
      assert.equal(await send(), true);
      assert.deepEqual(await everything(bed), once);
    }
  });
});

/** Longer than a command or a health check may take, milliseconds. */
const STALL_MS = 800;

describe('a gateway that stood still', () => {
  it('takes replies that arrived meanwhile: none of its commands is called lost', async () => {
    const records = await Promise.all(Array.from({ length: 20 }, () => bed.reserved()));
    const moved = records.map((record) => bed.store.ledger.advance(move(record, 'settling')));
    const page = bed.store.feed.page({ limit: 1 });
    const health = bed.store.check();
    standStill(STALL_MS);
    const kinds = (await Promise.all(moved)).map(({ kind }) => kind);
    assert.deepEqual(
      kinds,
      records.map(() => 'done'),
    );
    await page;
    assert.notEqual((await health).status, 'unreachable');
  });
});

const LIMITS = { eventsMaxLength: 100, receiptsMaxLength: 100, replicas: 1 } as const;
const [OLD, NEW] = ['the-old-password', 'the-new-password'];

describe('a changed password of Redis', { timeout: 60_000 }, () => {
  let redis: TestRedis;
  let admin: Redis;
  let store: Store;
  const configOf = (password: string) => ({
    ...LIMITS,
    merchantId: 'shop',
    engine: { kind: 'redis', url: redis.url, password } as const,
  });
  before(async () => {
    redis = await startRedis();
    admin = new Redis(redis.socketPath);
    await admin.acl('SETUSER', 'default', 'resetpass', `>${OLD}`, `>${NEW}`);
    store = await openStore(configOf(OLD));
  });
  after(async () => {
    await store?.close();
    admin?.disconnect();
    await redis?.stop();
  });

  it('is used for the next connection, and no command of the open one is lost', async () => {
    assert.equal(await store.secrets.agree('name', 'first'), 'first');
    store.renew?.(configOf(NEW));
    await admin.acl('SETUSER', 'default', `<${OLD}`);
    assert.equal(await store.secrets.agree('name', 'second'), 'first', 'the open connection stays');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    for (;;)
      if ((await store.check()).status === 'ok') break;
      else await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(await store.secrets.agree('name', 'third'), 'first');
  });
});
