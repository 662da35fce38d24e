import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { EventTail } from '../../src/events/event.ts';
import type { PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { terminate } from '../../tools/local-world/child.ts';
import { claimOf } from '../mandates/claims.ts';
import { event, holder, move, recordIn, TRANSACTION, terms } from '../payments/ledger/samples.ts';
import { freePorts } from '../support/ports.ts';
import { spawnServer } from '../support/redis.ts';
import { type ReplicatedRedis, startReplicatedRedis, until } from '../support/redis-replicas.ts';
import { checkoutClaim, holdOf, nextOf } from './contract-checkouts.ts';
import { done, granted, LEASE_MS, LIMITS } from './opened.ts';

/** Sentinels that watch one primary. */
interface Sentinels {
  /** What they call the primary. */
  readonly name: string;
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** The port of the primary as they know it now. */
  primaryPort(): Promise<number>;
  stop(): Promise<void>;
}

const NAME = 'shop';
const STOP_GRACE_MS = 2_000;
/** How long a primary may be silent before it counts as gone, milliseconds. */
const DOWN_AFTER_MS = 500;
/** A second failover has to wait for twice this, milliseconds. */
const FAILOVER_MS = 2_000;

/** Starts them and waits until they know each other and agree that they could fail over. */
async function startSentinels(count: number, primaryPort: number): Promise<Sentinels> {
  const ports = await freePorts(count);
  const directory = mkdtempSync(join(tmpdir(), 'acg-sentinel-'));
  const quorum = Math.floor(count / 2) + 1;
  const running: ChildProcess[] = [];
  for (const port of ports) {
    // A sentinel writes what it learns into its configuration.
    const file = join(directory, `${port}.conf`);
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${directory}`,
      `sentinel monitor ${NAME} 127.0.0.1 ${primaryPort} ${quorum}`,
      `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${NAME} ${FAILOVER_MS}`,
      `sentinel parallel-syncs ${NAME} 2`,
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    running.push(await spawnServer([file, '--sentinel'], /\+monitor master/));
  }
  const clients = ports.map((port) => {
    const client = new Redis({ host: '127.0.0.1', port, enableReadyCheck: false });
    client.on('error', () => undefined);
    return client;
  });
  const agree = async (): Promise<boolean> => {
    for (const client of clients) {
      const verdict = String(await client.call('SENTINEL', 'CKQUORUM', NAME));
      if (!verdict.startsWith(`OK ${count} usable`)) return false;
    }
    return true;
  };
  await until(agree, 'the sentinels do not know each other');
  return {
    name: NAME,
    nodes: ports.map((port) => ({ host: '127.0.0.1', port })),
    async primaryPort() {
      const [client] = clients;
      const address = await client?.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME);
      return Number(Array.isArray(address) ? address[1] : 0);
    },
    async stop() {
      for (const client of clients) client.disconnect();
      await Promise.all(running.map((child) => terminate(child, STOP_GRACE_MS)));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

let group: ReplicatedRedis;
let store: Store;

const open = (replicas = 2, log: string[] = []): Promise<Store> => {
  const line = (fields: object, message: string) => void log.push(`${message} ${JSON.stringify(fields)}`);
  return openRedisStore({
    url: group.primary.server.url,
    replicas,
    merchantId: 'shop',
    limits: LIMITS,
    log: { info: line, warn: line },
  });
};

/** A store of one test. */
async function own(t: TestContext, replicas?: number, log?: string[]): Promise<Store> {
  const opened = await open(replicas, log);
  t.after(() => opened.close());
  return opened;
}

async function reserved(one: Store = store): Promise<PaymentRecord> {
  return granted(await one.ledger.reserve({ terms: terms(), owner: randomUUID(), leaseMs: LEASE_MS }));
}

async function settling(): Promise<PaymentRecord> {
  return done(await store.ledger.advance(move(await reserved(), 'settling')));
}

async function whileCutOff<T>(work: () => Promise<T>): Promise<T> {
  group.cutOff();
  try {
    return await work();
  } finally {
    await group.reach();
  }
}

describe('a primary with two replicas', () => {
  before(async () => {
    group = await startReplicatedRedis(2);
    store = await open();
  });
  after(async () => {
    await store?.close();
    await group?.stop();
  });

  it('a settlement is on a replica when the store answers that it is begun, and that it is done', async () => {
    const begun = await settling();
    const held = async () => {
      const stored = group.replicas.map(({ admin }) => admin.get(`{acg:shop}:pay:${begun.payId}`));
      return (await Promise.all(stored)).join();
    };
    assert.match(await held(), /"state":"settling"/);
    done(await store.ledger.advance(move(begun, 'settled', { facts: { transaction: TRANSACTION, evidence: 'logs' } })));
    assert.match(await held(), /"state":"settled"/);
  });

  it('with the replicas cut off a settlement does not begin, however often it is asked and by whom', async (t) => {
    const record = await reserved();
    const command = move(record, 'settling', { events: [event('payment.verified', record.requestId)] });
    await whileCutOff(async () => {
      await assert.rejects(store.ledger.advance(command), StoreError);
      // The same step again changes nothing and waits too, also on a connection without a write.
      await assert.rejects(store.ledger.advance(command), StoreError);
      const fresh = await own(t);
      await assert.rejects(fresh.ledger.advance(command), StoreError);
    });
    assert.equal((await store.ledger.advance(command)).kind, 'done');
    assert.equal((await store.feed.page({ limit: 10, requestId: record.requestId })).events.length, 1);
  });

  it('and no attempt takes it over, which could then send it', async () => {
    const [begun, waiting] = [await settling(), await reserved()];
    for (const record of [begun, waiting]) await store.ledger.note({ ...holder(record), leaseMs: 0 });
    const again = (record: PaymentRecord) => ({ terms: record, owner: randomUUID(), leaseMs: LEASE_MS });
    const taking = again(begun);
    await whileCutOff(async () => {
      await assert.rejects(store.ledger.reserve(taking), StoreError);
      await assert.rejects(store.ledger.reserve(taking), StoreError);
      // Nothing is sent for this one before it is `settling`.
      assert.equal((await store.ledger.reserve(again(waiting))).kind, 'granted');
    });
    assert.partialDeepStrictEqual(await store.ledger.reserve(taking), { kind: 'granted', record: { fence: 2 } });
  });

  it('a refusal needs no replica', async () => {
    const begun = await settling();
    await whileCutOff(async () => {
      const strange = { ...begun, owner: 'other' };
      assert.deepEqual(await store.ledger.advance(move(strange, 'settled')), { kind: 'fenced' });
    });
  });

  it('other writes do not wait', async () => {
    const begun = await settling();
    await whileCutOff(async () => {
      const facts = { transaction: TRANSACTION };
      assert.equal((await store.ledger.note({ ...holder(begun), leaseMs: LEASE_MS, facts })).kind, 'done');
      assert.equal(await store.ledger.renew(begun, LEASE_MS), true);
    });
  });

  it('with one replica configured nothing waits: its loss would stop all payments', async (t) => {
    const one = await own(t, 1);
    await whileCutOff(async () => {
      assert.equal((await one.ledger.advance(move(await reserved(one), 'settling'))).kind, 'done');
    });
  });

  it('a free call uses its mandate only when a replica has that, however often it is asked', async (t) => {
    const [call, claim] = [randomUUID(), claimOf()];
    await whileCutOff(async () => {
      await assert.rejects(store.mandates.reserve(call, claim), StoreError);
      // It is written already and waits too, also on a connection without a write.
      await assert.rejects(store.mandates.reserve(call, claim), StoreError);
      const fresh = await own(t);
      await assert.rejects(fresh.mandates.reserve(call, claim), StoreError);
      // What is refused needs no replica, nor does the end of what was reserved.
      assert.partialDeepStrictEqual(await store.mandates.reserve(randomUUID(), claim), { kind: 'refused' });
      await store.mandates.finish(randomUUID(), 'release');
    });
    assert.deepEqual(await store.mandates.reserve(call, claim), { kind: 'reserved' });
  });

  it('a checkout operation is granted, and its answer kept, only when a replica has that', async (t) => {
    const [claim, running, done] = [checkoutClaim(), checkoutClaim(), checkoutClaim()];
    const owning = { session: claim.name, owner: claim.fingerprint, keepMs: LEASE_MS };
    for (const one of [running, done]) await store.checkouts.claim(one);
    const answer = { status: 200, sealed: 'sealed', keepMs: LEASE_MS };
    await store.checkouts.finish(holdOf(done), answer);
    await whileCutOff(async () => {
      const fresh = await own(t);
      for (const one of [store, store, fresh]) {
        await assert.rejects(one.checkouts.claim(claim), StoreError);
        await assert.rejects(one.checkouts.finish(holdOf(running), answer), StoreError);
        await assert.rejects(one.checkouts.own(owning), StoreError);
      }
      // What writes nothing needs no replica, nor does an end after which the merchant is asked
      // again.
      assert.partialDeepStrictEqual(await store.checkouts.claim(nextOf(done)), { kind: 'completed' });
      assert.partialDeepStrictEqual(await store.checkouts.claim(nextOf(claim)), { kind: 'in_flight' });
      assert.equal(await store.checkouts.finish(holdOf(claim, 2), answer), false);
      assert.equal(await store.checkouts.unknown(holdOf(claim), { why: 'timeout', keepMs: LEASE_MS }), true);
    });
    assert.partialDeepStrictEqual(await store.checkouts.claim(nextOf(claim)), { kind: 'granted', fence: 2 });
    assert.equal(await store.checkouts.finish(holdOf(running), answer), true);
    assert.equal(await store.checkouts.own(owning), true);
    assert.equal(await store.checkouts.ownership(owning), 'own');
  });

  it('a primary without the scripts gets them, and the write still waits', async () => {
    const record = await reserved();
    await group.primary.admin.script('FLUSH');
    const command = move(record, 'settling', { events: [event('payment.verified', record.requestId)] });
    assert.equal((await store.ledger.advance(command)).kind, 'done');
    assert.equal((await store.feed.page({ limit: 10, requestId: record.requestId })).events.length, 1);
    await whileCutOff(async () => {
      const next = await reserved();
      await group.primary.admin.script('FLUSH');
      await assert.rejects(store.ledger.advance(move(next, 'settling')), StoreError);
    });
  });

  it('fewer replicas than configured are degraded, and logged once at the start', async (t) => {
    const log: string[] = [];
    const three = await own(t, 3, log);
    assert.partialDeepStrictEqual(await three.check(), { status: 'degraded', cause: '2 of 3 replicas are online' });
    await until(async () => log.some((line) => line.includes('"weak"')), 'the log has no such line');
    const weak = log.filter((line) => line.includes('"weak"'));
    assert.deepEqual(weak, ['redis may lose payments as it is set up {"weak":["2 of 3 replicas are online"]}']);
    const fresh = await own(t);
    assert.deepEqual(await fresh.check(), { status: 'ok' });
  });
});

/**
 * The sentinels need about 2 s, the client at most one pause more; the rest is for a busy machine.
 */
const GAP_LIMIT_MS = 15_000;
/** The position of no ring: a tail answers it at once. */
const NEVER = 'evt_9999999999999999-0';
/** How long payments run into a primary whose replicas are cut off before it dies, milliseconds. */
const SPLIT_MS = 400;
/** Settlements that are acknowledged as begun before that. */
const ENOUGH = 5;
let sentinels: Sentinels;
/** One waits for replicas; the other does not, and loses settlements: the positive control. */
let stores: { readonly waiting: Store; readonly hasty: Store };
/** Follows the events since before the first failover. */
let tail: EventTail;

/** Begins one settlement after the other; the list grows by those that were acknowledged. */
function begin({ ledger }: Store) {
  const acknowledged: string[] = [];
  let running = true;
  const work = (async () => {
    while (running) {
      try {
        const record = recordIn(await ledger.reserve({ terms: terms(), owner: randomUUID(), leaseMs: LEASE_MS }));
        const answer = await ledger.advance(move(record, 'settling'));
        if (answer.kind === 'done') acknowledged.push(record.payId);
      } catch {
        await delay(10);
      }
    }
  })();
  const stop = async () => {
    running = false;
    await work;
  };
  return { acknowledged, stop };
}

/** Milliseconds from `since` until more than `before` were acknowledged. */
async function gapOf(
  { acknowledged }: { readonly acknowledged: readonly string[] },
  before: number,
  since: number,
): Promise<number> {
  for (; acknowledged.length <= before; await delay(10))
    assert.ok(performance.now() - since < GAP_LIMIT_MS, 'no write got through after the failover');
  return Math.round(performance.now() - since);
}

async function lostOf({ ledger }: Store, payIds: readonly string[]): Promise<number> {
  const records = await Promise.all(payIds.map((payId) => ledger.read(payId)));
  return records.filter((record) => record?.state !== 'settling').length;
}

describe('a primary that sentinels watch', () => {
  before(async () => {
    group = await startReplicatedRedis(2);
    sentinels = await startSentinels(3, group.primary.port);
    const { name, nodes } = sentinels;
    // The first sentinel of the list is not there.
    const sentinel = { name, nodes: [{ host: '127.0.0.1', port: 1 }, ...nodes] };
    const open = (replicas: number) => openRedisStore({ sentinel, replicas, merchantId: 'shop', limits: LIMITS });
    stores = { waiting: await open(2), hasty: await open(0) };
    tail = stores.hasty.feed.tail();
    await stores.hasty.feed.append([event('resource.requested', 'before')]);
    assert.equal((await tail.read('evt_0-0', 5)).entries.length, 1);
  });
  after(async () => {
    tail?.close();
    await stores?.waiting.close();
    await stores?.hasty.close();
    await sentinels?.stop();
    await group?.stop();
  });

  it('kill -9 while its replicas are behind: writes go on by themselves, no acknowledged settlement is lost', async (t) => {
    const [waiting, hasty] = [begin(stores.waiting), begin(stores.hasty)];
    await until(async () => waiting.acknowledged.length >= ENOUGH, 'nothing is settled');
    group.cutOff();
    await delay(SPLIT_MS);
    const before = { waiting: waiting.acknowledged.length, hasty: hasty.acknowledged.length };
    await group.primary.server.kill();
    const killed = performance.now();
    const gapMs = await gapOf(waiting, before.waiting, killed);
    await Promise.all([waiting.stop(), hasty.stop()]);

    assert.notEqual(await sentinels.primaryPort(), group.primary.port);
    assert.equal(await lostOf(stores.waiting, waiting.acknowledged), 0);
    const lost = await lostOf(stores.waiting, hasty.acknowledged);
    assert.ok(lost > 0, 'without waiting nothing was lost either: this test proves nothing');
    t.diagnostic(
      `writes flowed again after ${gapMs} ms; acknowledged and lost: 0 of ${waiting.acknowledged.length} with WAIT, ${lost} of ${hasty.acknowledged.length} without`,
    );
  });

  it('a tail gets the events of the new primary', async () => {
    const { feed } = stores.hasty;
    await until(async () => (await stores.hasty.check()).status === 'ok', 'the store does not recover');
    await until(async () => (await tail.read(NEVER, 1)).standing === 'ahead', 'the tail does not recover');
    const from = await feed.newest();
    await feed.append([event('resource.requested', 'after')]);
    const [entry] = (await tail.read(from, 5)).entries;
    assert.equal(entry?.event?.requestId, 'after');
  });

  it('the new primary is written to under the same tokens', async () => {
    const { ledger } = stores.waiting;
    const record = recordIn(await ledger.reserve({ terms: terms(), owner: randomUUID(), leaseMs: LEASE_MS }));
    const command = move(record, 'settling');
    const answers = [await ledger.advance(command), await ledger.advance(command)];
    assert.deepEqual(answers[1], answers[0]);
    assert.equal((await ledger.note({ ...holder(record), leaseMs: 0 })).kind, 'done');
  });

  it('a primary that hangs with open connections is replaced too', async (t) => {
    const port = await sentinels.primaryPort();
    const { server } = group.replicas.find((member) => member.port === port) ?? assert.fail('no new primary');
    process.kill(server.pid, 'SIGSTOP');
    const since = performance.now();
    // The last server has no replica left, so only the store that does not wait goes on.
    const hasty = begin(stores.hasty);
    t.diagnostic(`writes flowed again after ${await gapOf(hasty, 0, since)} ms`);
    await hasty.stop();
    assert.notEqual(await sentinels.primaryPort(), port);
  });
});
