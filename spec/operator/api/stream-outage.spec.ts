import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readStream } from '../../support/event-stream.ts';
import { eventually } from '../../support/records.ts';
import { lineBeds, received, recovered } from './redis-line-bed.ts';
import { append, openBed, RING, TOKEN } from './stream-bed.ts';

const { server, bed } = lineBeds();

describe('streams while Redis is away', () => {
  it('kill -9: no reader is cut, and all events come when the server is back', async (t) => {
    const { open, store, other, troubles } = await bed(t);
    const client = await open();
    const before = await append(other, 300);
    await client.until(({ ids }) => ids().length === 300, 'what came before');
    await server().kill();
    await eventually(async () => (troubles.length > 0 ? true : undefined), 'trouble');
    await server().restart();
    await recovered(other);
    const later = await append(other, 300);
    await client.until(({ ids }) => ids().length >= 600, 'what came later');
    assert.deepEqual(received(client), [...before, ...later]);
    assert.equal(troubles.length, 1, 'reported once');
    await recovered(store);
  });

  it('what others wrote meanwhile comes when the line is open again, without a gap', async (t) => {
    const { open, line, other, troubles } = await bed(t);
    const client = await open();
    const first = await append(other, 1);
    await client.until(({ ids }) => ids().length === 1, 'the first');
    line.cut();
    await eventually(async () => (troubles.length > 0 ? true : undefined), 'trouble');
    const missed = await append(other, 1_200);
    line.mend();
    await client.until(({ ids }) => ids().length >= 1_201, 'what was missed');
    assert.deepEqual(received(client), [...first, ...missed]);
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
    const [one, gap, ...rest] = received(client);
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
    await recovered(store);
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
    assert.ok(!client.text().includes(': draining'), 'the process goes on');
    line.mend();
    await recovered(store);
    const got = client.ids();
    assert.equal(got.length, 500, 'one page');
    const again = await failing.open(got.at(-1));
    await again.until((one) => one.ids().length >= 1_399, 'the rest');
    assert.deepEqual([...got, ...again.ids()], ids.slice(1));
  });
});
