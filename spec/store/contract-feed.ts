import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EventFeed } from '../../src/events/event.ts';
import { BEGINNING, comparePositions } from '../../src/events/page.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
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

/** Faster than a poll, milliseconds. */
const PROMPT_MS = 500;
/** The position of no ring. */
const NEVER = 'evt_9999999999999999-9999999999';

const drafts = (count: number, name: string) =>
  Array.from({ length: count }, (_, i) => event('resource.requested', `${name}-${i}`));

/** Everything after a position, page by page. */
async function allAfter(feed: EventFeed, position: string, count: number) {
  const names: (string | undefined)[] = [];
  for (let from = position; ; ) {
    const { entries } = await feed.after(from, count);
    names.push(...entries.map(({ event: one }) => one?.requestId));
    const last = entries.at(-1);
    if (last === undefined) return names;
    from = last.id;
  }
}

export function tailContract(name: string, open: OpenStore): void {
  describe(`${name}: what follows a position`, () => {
    const { store } = opened(open);

    it('an empty ring begins where every event is still to come', async () => {
      const { feed } = store();
      assert.equal(await feed.newest(), BEGINNING);
      assert.deepEqual(await feed.after(BEGINNING, 10), { entries: [], standing: 'unknown' });
    });

    it('is given oldest first, in pages without a gap or a repetition', async () => {
      const { feed } = store();
      await feed.append(drafts(25, 'page'));
      const wanted = drafts(25, 'page').map(({ requestId }) => requestId);
      for (const count of [1, 10, 24, 25, 26]) assert.deepEqual(await allAfter(feed, BEGINNING, count), wanted);
      const { events } = await feed.page({ limit: 1 });
      assert.equal(await feed.newest(), events[0]?.id);
      const { entries } = await feed.after(BEGINNING, 50);
      assert.deepEqual(entries.at(-1)?.event, events[0]);
    });

    it('is held, unknown or ahead while the ring has dropped nothing', async () => {
      const { feed } = store();
      await feed.append(drafts(3, 'standing'));
      const standing = async (position: string) => (await feed.after(position, 1)).standing;
      const { entries } = await feed.after(BEGINNING, 500);
      for (const { id } of entries) assert.equal(await standing(id), 'held');
      for (const position of [BEGINNING, 'evt_1-1']) assert.equal(await standing(position), 'unknown');
      assert.deepEqual(await feed.after(NEVER, 10), { entries: [], standing: 'ahead' });
    });

    it('is dropped only for a position before the entries that are left', async () => {
      const { feed } = store();
      const first = await feed.newest();
      for (let i = 0; i < 9; i += 1) await feed.append(drafts(100, `ring-${i}`));
      const { entries, standing } = await feed.after(first, 1_000);
      assert.equal(standing, 'dropped');
      assert.ok(entries.length >= LIMITS.eventsMaxLength);
      assert.equal((await feed.after(BEGINNING, 1)).standing, 'dropped');
      const oldest = entries[0]?.id ?? assert.fail('nothing is left');
      assert.deepEqual(await feed.after(oldest, 1_000), { entries: entries.slice(1), standing: 'held' });
    });
  });

  describe(`${name}: the tail of the feed`, () => {
    const { store } = opened(open);

    it('gives at once what is there, at most as much as asked for', async () => {
      const { feed } = store();
      await feed.append(drafts(5, 'there'));
      const tail = feed.tail();
      const { entries } = await tail.read(BEGINNING, 3);
      assert.deepEqual(entries, (await feed.after(BEGINNING, 3)).entries);
      tail.close();
    });

    it('waits for the next event, also one that a payment carries, and for nothing longer', async () => {
      const { feed } = store();
      const tail = feed.tail();
      let from = await feed.newest();
      // The connection is there from the first read on.
      for (let round = 0; round < 5; round += 1) {
        const read = tail.read(from, 10);
        await feed.append([event('backend.called', `next-${round}`)]);
        const at = performance.now();
        const { entries, standing } = await read;
        if (round > 0) assert.ok(performance.now() - at < PROMPT_MS);
        assert.deepEqual(
          entries.map(({ event: one }) => one?.requestId),
          [`next-${round}`],
        );
        assert.equal(standing, round === 0 && from === BEGINNING ? 'unknown' : 'held');
        assert.ok(comparePositions(entries[0]?.id ?? BEGINNING, from) > 0);
        from = entries[0]?.id ?? from;
      }
      tail.close();
    });

    it('answers at once for a position that the ring never reached', async () => {
      const tail = store().feed.tail();
      const at = performance.now();
      assert.deepEqual(await tail.read(NEVER, 10), { entries: [], standing: 'ahead' });
      assert.ok(performance.now() - at < 2 * PROMPT_MS);
      tail.close();
    });

    it('gives up waiting when it is closed', async () => {
      const { feed } = store();
      const tail = feed.tail();
      await feed.append([event('backend.called', 'last')]);
      const { entries } = await tail.read(BEGINNING, 500);
      const read = tail.read(entries.at(-1)?.id ?? BEGINNING, 10);
      const refused = assert.rejects(read, StoreError);
      tail.close();
      await refused;
      await assert.rejects(tail.read(BEGINNING, 10), StoreError);
    });
  });
}
