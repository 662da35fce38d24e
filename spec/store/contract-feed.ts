import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { event } from '../payments/ledger/samples.ts';
import { LIMITS, type OpenStore, opened } from './opened.ts';

/** The ring of Redis is trimmed by whole nodes: this many entries more may be left. */
const RING_SLACK = 100;

export function feedContract(name: string, open: OpenStore): void {
  describe(`${name}: the event feed`, () => {
    const { store } = opened(open);

    it('keeps the order of appending under strictly growing ids, newest first', async () => {
      const { feed } = store();
      await feed.append([event('resource.requested', 'a'), event('backend.called', 'a')]);
      await feed.append([event('resource.delivered', 'a')]);
      const { events, nextCursor } = await feed.page({ limit: 10 });
      assert.deepEqual(
        events.map(({ type }) => type),
        ['resource.delivered', 'backend.called', 'resource.requested'],
      );
      assert.equal(nextCursor, undefined);
      const ids = events.map(({ id }) => place(id));
      assert.deepEqual(ids, ids.toSorted(newestFirst));
      assert.equal(new Set(events.map(({ id }) => id)).size, 3);
    });

    it('leaves out data of more than 2,048 bytes and nothing else', async () => {
      const atBound = { text: 'x'.repeat(2_048 - '{"text":""}'.length) };
      const overBound = { text: `${atBound.text}x` };
      // 1,030 characters, 2,049 bytes.
      const manyBytes = { text: 'é'.repeat(1_019) };
      const { feed } = store();
      await feed.append(
        [atBound, overBound, manyBytes].map((data, i) => event('backend.failed', `data-${i}`, { data, durationMs: 5 })),
      );
      const stored = async (requestId: string) => (await feed.page({ limit: 1, requestId })).events[0];
      assert.deepEqual((await stored('data-0'))?.data, atBound);
      for (const requestId of ['data-1', 'data-2']) {
        const { id: _position, ...rest } = (await stored(requestId)) ?? assert.fail('the event itself is kept');
        assert.deepEqual(rest, event('backend.failed', requestId, { durationMs: 5 }));
      }
    });

    it('pages through all events without a gap or a repetition', async () => {
      const { feed } = store();
      const sent = Array.from({ length: 25 }, (_, i) => event('resource.requested', `page-${i}`));
      await feed.append(sent);
      const seen: string[] = [];
      for (let cursor: string | undefined, rounds = 0; rounds < 10; rounds += 1) {
        const page = await feed.page({ limit: 10, ...(cursor === undefined ? {} : { cursor }) });
        seen.push(...page.events.map(({ requestId }) => requestId).filter((id) => id.startsWith('page-')));
        cursor = page.nextCursor;
        if (cursor === undefined) break;
      }
      assert.deepEqual(seen, sent.map(({ requestId }) => requestId).reverse());
    });

    it('finds by request, resource and type, and points on only when something is left', async () => {
      const { feed } = store();
      const noise = Array.from({ length: 30 }, (_, i) => event('resource.requested', `noise-${i}`));
      const wanted = [event('payment.settled', 'wanted', { resourceId: 'rare' }), event('backend.called', 'wanted')];
      await feed.append([...wanted, ...noise]);
      const types = async (query: object) => (await feed.page({ limit: 50, ...query })).events.map(({ type }) => type);
      assert.deepEqual(await types({ requestId: 'wanted' }), ['backend.called', 'payment.settled']);
      assert.deepEqual(await types({ resourceId: 'rare' }), ['payment.settled']);
      assert.deepEqual(await types({ requestId: 'wanted', type: 'backend.called' }), ['backend.called']);
      assert.deepEqual(await feed.page({ limit: 5, requestId: 'unknown' }), { events: [] });
      const first = await feed.page({ limit: 1, requestId: 'wanted' });
      assert.equal(first.nextCursor, first.events[0]?.id);
      const second = await feed.page({ limit: 1, requestId: 'wanted', cursor: first.nextCursor ?? '' });
      assert.equal(second.events[0]?.type, 'payment.settled');
      assert.equal(second.nextCursor, undefined);
    });

    it('drops the oldest over its cap', async () => {
      const { feed } = store();
      const sent = Array.from({ length: 900 }, (_, i) => event('payment.required', `ring-${i}`));
      for (let i = 0; i < sent.length; i += 100) await feed.append(sent.slice(i, i + 100));
      const { events } = await feed.page({ limit: 500 });
      assert.ok(events.length >= LIMITS.eventsMaxLength && events.length <= LIMITS.eventsMaxLength + RING_SLACK);
      assert.equal(events[0]?.requestId, 'ring-899');
      assert.equal(events[LIMITS.eventsMaxLength - 1]?.requestId, 'ring-600');
    });
  });
}

function place(id: string): readonly [number, number] {
  const [, ms, seq] = /^evt_(\d+)-(\d+)$/.exec(id) ?? assert.fail(id);
  return [Number(ms), Number(seq)];
}

function newestFirst(a: readonly [number, number], b: readonly [number, number]): number {
  return b[0] - a[0] || b[1] - a[1];
}
