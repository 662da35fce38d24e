import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it, type TestContext } from 'node:test';
import type { PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { claimOf } from '../mandates/register/register-map.ts';
import { event, holder, move, TRANSACTION, terms } from '../payments/ledger/samples.ts';
import { type ReplicatedRedis, startReplicatedRedis, until } from '../support/redis-replicas.ts';
import { checkoutClaim, holdOf, nextOf } from './checkout-samples.ts';
import { done, granted, LEASE_MS, LIMITS } from './opened.ts';

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
