import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { openRedisStore } from '../../src/store/redis/open.ts';
import { eventually } from '../support/books.ts';
import { readStream, type StreamClient } from '../support/event-stream.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { startLine } from '../support/redis-proxy.ts';
import { append, openBed, RING, TOKEN } from './stream-bed.ts';

const LIMITS = { eventsMaxLength: RING, receiptsMaxLength: 10 };

let server: TestRedis;
let admin: Redis;
before(async () => {
  server = await startRedis({ args: ['--appendfsync', 'always'] });
  admin = new Redis({ path: server.socketPath });
  admin.on('error', () => undefined);
});
after(async () => {
  admin?.disconnect();
  await server?.stop();
});

/** Routes over a store that reaches Redis over a line, and a second store that needs none, as another replica would be. */
async function bed(t: TestContext) {
  const merchantId = randomUUID();
  const line = await startLine({ path: server.socketPath });
  const store = await openRedisStore({ url: `redis://127.0.0.1:${line.port}`, merchantId, limits: LIMITS });
  const other = await openRedisStore({ url: server.url, merchantId, limits: LIMITS });
  const opened = await openBed(store);
  t.after(async () => {
    await opened.close();
    await store.close();
    await other.close();
    await line.stop();
  });
  return { ...opened, line, other, key: `{acg:${merchantId}}:ev` };
}

async function ready(store: { check(): Promise<{ readonly status: string }> }): Promise<void> {
  await eventually(async () => ((await store.check()).status === 'ok' ? true : undefined), 'the store');
}

/** What a client has been told, without its opening: `gap` and ids. */
function told(client: StreamClient): readonly string[] {
  return [...client.text().matchAll(/^(?:: (gap)|id: (.*))$/gm)].map(([, gap, id]) => gap ?? id ?? '');
}

describe('streams while Redis is away', () => {
  it('kill -9: nobody is cut, and everything that was written comes when it is back', async (t) => {
    const { open, store, other, troubles } = await bed(t);
    const client = await open();
    const before = await append(other, 300);
    await client.until(({ ids }) => ids().length === 300, 'what came before');
    await server.kill();
    await eventually(async () => (troubles.length > 0 ? true : undefined), 'trouble');
    await server.restart();
    await ready(other);
    const later = await append(other, 300);
    await client.until(({ ids }) => ids().length >= 600, 'what came later');
    assert.deepEqual(told(client), [...before, ...later]);
    assert.equal(troubles.length, 1, 'told once');
    await ready(store);
  });

  it('what others wrote meanwhile comes when the line is mended, without a gap', async (t) => {
    const { open, line, other, troubles } = await bed(t);
    const client = await open();
    const first = await append(other, 1);
    await client.until(({ ids }) => ids().length === 1, 'the first');
    line.cut();
    await eventually(async () => (troubles.length > 0 ? true : undefined), 'trouble');
    const missed = await append(other, 1_200);
    line.mend();
    await client.until(({ ids }) => ids().length >= 1_201, 'what was missed');
    assert.deepEqual(told(client), [...first, ...missed]);
  });

  it('more than the ring holds was written meanwhile: gap, and then what is left', async (t) => {
    const { open, line, other, troubles } = await bed(t);
    const client = await open();
    const first = await append(other, 1);
    await client.until(({ ids }) => ids().length === 1, 'the first');
    line.cut();
    await eventually(async () => (troubles.length > 0 ? true : undefined), 'trouble');
    for (let round = 0; round < 2; round += 1) await append(other, 1_000);
    const last = await append(other, 1_000);
    line.mend();
    await client.until(({ ids }) => ids().at(-1) === last.at(-1), 'the last');
    const [one, gap, ...rest] = told(client);
    assert.deepEqual([one, gap], [first[0], 'gap']);
    assert.ok(rest.length >= RING && !rest.includes('gap'));
    assert.deepEqual(rest.slice(-last.length), last);
  });

  it('a new stream is refused as long as the store gives no answer', async (t) => {
    const { url, line, store } = await bed(t);
    line.cut();
    for (const lastEventId of [undefined, 'evt_1-1']) {
      const refused = await readStream(url, { token: TOKEN, ...(lastEventId === undefined ? {} : { lastEventId }) });
      await refused.ended;
      assert.deepEqual([refused.status, JSON.parse(refused.text()).code], [503, 'STORAGE_ERROR']);
    }
    line.mend();
    await ready(store);
    const client = await readStream(url, { token: TOKEN });
    assert.equal(client.status, 200);
    client.leave();
  });

  it('a store that fails under a replay ends it where the reader can go on', async (t) => {
    const { line, store, other } = await bed(t);
    const ids = await append(other, 1_900);
    const [from = ''] = ids;
    let pages = 0;
    const failing = await openBed({
      ...store,
      feed: {
        ...store.feed,
        after(position, count) {
          pages += 1;
          if (pages === 2) line.cut();
          return store.feed.after(position, count);
        },
      },
    });
    t.after(() => failing.close());
    const client = await failing.open(from);
    await client.ended;
    line.mend();
    await ready(store);
    const got = client.ids();
    assert.equal(got.length, 500, 'one page');
    const again = await failing.open(got.at(-1));
    await again.until((one) => one.ids().length >= 1_399, 'the rest');
    assert.deepEqual([...got, ...again.ids()], ids.slice(1));
  });
});

describe('streams over a ring that lost its memory', () => {
  it('whose ids begin anew: gap, and what happens then comes', async (t) => {
    const { open, store, key, troubles } = await bed(t);
    const client = await open();
    const [first = ''] = await append(store, 1);
    await client.until(({ ids }) => ids().length === 1, 'the first');
    await admin.del(key);
    // As a clock that went back would number them.
    await client.until(() => told(client).length === 2, 'gap');
    for (const id of ['5-1', '5-2']) await admin.xadd(key, id, 'e', JSON.stringify({ type: 'backend.called' }));
    await client.until(({ ids }) => ids().length === 3, 'what happens then');
    assert.deepEqual(told(client), [first, 'gap', 'evt_5-1', 'evt_5-2']);
    assert.equal(troubles.length, 0, 'waiting in quiet times is none');
  });

  it('who had read further than the live events hears of what happens then, too', async (t) => {
    const { line, store, other, key } = await bed(t);
    // Pages come from Redis itself, live events over the line.
    const split = await openBed({ ...other, feed: { ...other.feed, tail: () => store.feed.tail() } });
    const { troubles } = split;
    t.after(() => split.close());
    const before = await split.open();
    const [first = ''] = await append(other, 1);
    await before.until(({ ids }) => ids().length === 1, 'the first');
    line.cut();
    await eventually(async () => (troubles.length > 0 ? true : undefined), 'trouble');
    const missed = await append(other, 3);
    const client = await split.open(first);
    await client.until(({ ids }) => ids().length === 3, 'old events');
    await admin.del(key);
    line.mend();
    await client.until(() => told(client).includes('gap'), 'gap');
    await admin.xadd(key, '5-1', 'e', JSON.stringify({ type: 'backend.called' }));
    await client.until(({ ids }) => ids().length === 4, 'what happens then');
    assert.deepEqual(told(client), [...missed, 'gap', 'evt_5-1']);
  });

  it('whose ids go on: gap, and what happens then comes', async (t) => {
    const { open, line, store, other, key, troubles } = await bed(t);
    const client = await open();
    const [first = ''] = await append(store, 1);
    await client.until(({ ids }) => ids().length === 1, 'the first');
    line.cut();
    await eventually(async () => (troubles.length > 0 ? true : undefined), 'trouble');
    await admin.del(key);
    const later = await append(other, 3);
    line.mend();
    await client.until(({ ids }) => ids().length === 4, 'what happens then');
    assert.deepEqual(told(client), [first, 'gap', ...later]);
  });
});

describe('what follows the ring', () => {
  const tails = async () =>
    String(await admin.client('LIST'))
      .split('\n')
      .filter((line) => / name=acg-tail-/.test(line));

  it('one connection however many read, none while nobody does', async (t) => {
    const { open, stream, other } = await bed(t);
    assert.equal((await tails()).length, 0);
    const clients = await Promise.all(Array.from({ length: 5 }, () => open()));
    await append(other, 1);
    for (const client of clients) await client.until(({ ids }) => ids().length === 1, 'an event');
    assert.equal((await tails()).length, 1);
    for (const client of clients) client.leave();
    await eventually(async () => ((await tails()).length === 0 ? true : undefined), 'no connection');
    assert.equal(stream.facts().silentMs, 0);
    const again = await open();
    await append(other, 1);
    await again.until(({ ids }) => ids().length === 1, 'an event');
  });

  it('an entry that is no event is passed over', async (t) => {
    const { open, other, key } = await bed(t);
    const client = await open();
    await admin.xadd(key, '*', 'e', 'not json\n\nid: evt_1-1');
    const ids = await append(other, 1);
    await client.until((one) => one.ids().length === 1, 'an event');
    assert.deepEqual(client.ids(), ids);
  });
});
