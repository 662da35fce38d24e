import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { EventTail } from '../../src/events/event.ts';
import type { Store } from '../../src/store/documents/store.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { event, holder, move, recordIn, terms } from '../payments/ledger/samples.ts';
import { type ReplicatedRedis, startReplicatedRedis, until } from '../support/redis-replicas.ts';
import { type Sentinels, startSentinels } from '../support/redis-sentinels.ts';
import { LEASE_MS, LIMITS } from './opened.ts';

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

let group: ReplicatedRedis;
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
