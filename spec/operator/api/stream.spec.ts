import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { event } from '../../payments/ledger/samples.ts';
import { append, engines, openBedFor, RING, RING_SLACK } from './stream-bed.ts';

const OPENING = ': connected\n\nretry: 2000\n\n';

for (const [engine, open] of engines()) {
  const bed = async (t: TestContext) => openBedFor(t, await open());

  describe(`the event stream over ${engine}`, () => {
    it('begins with its comment, names no event type, and carries each event as it is listed, byte for byte', async (t) => {
      const { open: stream, store } = await bed(t);
      await store.feed.append([event('resource.requested', 'before')]);
      const client = await stream();
      assert.equal(client.status, 200);
      assert.equal(client.headers['content-type'], 'text/event-stream');
      assert.equal(client.headers['cache-control'], 'no-store');
      assert.equal(client.headers['x-accel-buffering'], 'no');
      await client.until(({ text }) => text() === OPENING, 'opening');
      // A line break inside an event must not end its line in the frame.
      const data = { text: 'two\nlines\r\nid: evt_1-1\n\n' };
      await store.feed.append([event('backend.failed', 'a', { data }), event('resource.delivered', 'a')]);
      await client.until(({ ids }) => ids().length === 2, 'two events');
      const { events } = await store.feed.page({ limit: 2 });
      const frames = events.toReversed().map((one) => `id: ${one.id}\ndata: ${JSON.stringify(one)}\n\n`);
      assert.equal(client.text(), OPENING + frames.join(''));
      assert.equal(JSON.parse(frames[0]?.split('\ndata: ')[1] ?? '').data.text, data.text);
    });

    it('gives every reader the same events in the same order', async (t) => {
      const { open: stream, store } = await bed(t);
      const clients = await Promise.all([stream(), stream(), stream()]);
      const ids = await append(store, 700);
      for (const client of clients) {
        await client.until((one) => one.ids().length >= ids.length, 'all events');
        assert.deepEqual(client.ids(), ids);
      }
    });

    it('goes on after Last-Event-ID with everything the ring has, then with new events, nothing lost or doubled', async (t) => {
      const { open: stream, store } = await bed(t);
      // More than two pages.
      const old = await append(store, 1_250);
      const [, second = ''] = old;
      const client = await stream(second);
      const live = await append(store, 300);
      const wanted = [...old.slice(2), ...live];
      await client.until(({ ids }) => ids().length >= wanted.length, 'old and new events');
      assert.deepEqual(client.ids(), wanted);
      assert.ok(client.text().startsWith(`${OPENING}id: ${old[2]}\n`));
      assert.ok(!client.text().includes(': gap'));
    });

    it('knows a position however its numbers are written', async (t) => {
      const { open: stream, store } = await bed(t);
      const [first = '', ...rest] = await append(store, 3);
      const [ms = '', seq = ''] = first.slice(4).split('-');
      const client = await stream(`evt_${ms.padStart(16, '0')}-${seq.padStart(10, '0')}`);
      await client.until(({ ids }) => ids().length === 2, 'what follows');
      assert.deepEqual(client.ids(), rest);
      assert.ok(!client.text().includes(': gap'));
    });

    it('joins while events keep coming, nothing lost or doubled', async (t) => {
      const { open: stream, store } = await bed(t);
      const from = (await append(store, 1))[0] ?? '';
      const before = await append(store, 600);
      const writing = append(store, 1_200);
      // A busy store ends a replay, and the reader resumes.
      const read = async (): Promise<readonly string[]> => {
        const got: string[] = [];
        while (got.length < before.length + 1_200) {
          const client = await stream(got.at(-1) ?? from);
          const missing = before.length + 1_200 - got.length;
          await client.until(({ ids }) => ids().length >= missing, 'all events').catch(() => undefined);
          got.push(...client.ids());
        }
        return got;
      };
      const all = await Promise.all(Array.from({ length: 8 }, read));
      const wanted = [...before, ...(await writing)];
      for (const got of all) assert.deepEqual(got, wanted);
    });

    it('sends gap when events after the position were dropped, before those that are left', async (t) => {
      const { open: stream, store } = await bed(t);
      const [lost = ''] = await append(store, 1);
      for (let round = 0; round < 3; round += 1) await append(store, 1_000);
      const client = await stream(lost);
      await client.until(({ ids }) => ids().length >= RING, 'what is left');
      assert.ok(client.ids().length <= RING + RING_SLACK);
      assert.ok(client.text().startsWith(`${OPENING}: gap\n\nid: `));
      assert.equal(client.text().split(': gap').length, 2, 'sent once');
    });

    it('sends no gap when only events before the position were dropped', async (t) => {
      const { open: stream, store } = await bed(t);
      for (let round = 0; round < 2; round += 1) await append(store, 1_000);
      const [kept = '', ...rest] = await append(store, 500);
      const client = await stream(kept);
      await client.until(({ ids }) => ids().length === 499, 'what follows');
      assert.deepEqual(client.ids(), rest);
      assert.ok(!client.text().includes(': gap'));
    });

    for (const position of ['evt_0-0', 'evt_1-1'])
      it(`${position}: everything, and no gap, while nothing was dropped`, async (t) => {
        const { open: stream, store } = await bed(t);
        const ids = await append(store, 5);
        const client = await stream(position);
        await client.until((one) => one.ids().length === 5, 'all events');
        assert.deepEqual(client.ids(), ids);
        assert.ok(!client.text().includes(': gap'));
      });

    it('a position that the ring never reached: gap, and then new events', async (t) => {
      const { open: stream, store } = await bed(t);
      await append(store, 3);
      const client = await stream('evt_9999999999999999-9999999999');
      await client.until(({ text }) => text() === `${OPENING}: gap\n\n`, 'gap');
      const ids = await append(store, 2);
      await client.until((one) => one.ids().length === 2, 'live events');
      assert.deepEqual(client.ids(), ids);
    });

    it('an empty ring is no gap', async (t) => {
      const { open: stream, store } = await bed(t);
      const client = await stream('evt_0-0');
      await client.until(({ text }) => text() === OPENING, 'opening');
      const ids = await append(store, 1);
      await client.until((one) => one.ids().length === 1, 'the first event');
      assert.deepEqual(client.ids(), ids);
    });
  });
}
