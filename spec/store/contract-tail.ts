import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EventFeed } from '../../src/events/event.ts';
import { BEGINNING, comparePositions } from '../../src/events/page.ts';
import { StoreError } from '../../src/store/port/store-error.ts';
import { event } from '../payments/ledger/samples.ts';
import { LIMITS, type OpenStore, opened } from './opened.ts';

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
