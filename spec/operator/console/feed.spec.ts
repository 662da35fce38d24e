import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { catchUp, cursorAt } from '../../../src/operator/console/session.js';
import { RECEIPT_ID } from '../../../src/receipts/receipt.ts';

/** A feed of numbered entries, newest first, in pages of three. */
function feed(entries: readonly number[]) {
  const ids = entries.map(String);
  return async (cursor: string | undefined) => {
    const from = cursor === undefined ? 0 : ids.indexOf(cursor) + 1;
    const items = ids.slice(from, from + 3).map((id) => ({ id }));
    const more = from + 3 < ids.length;
    return { items, ...(more ? { next: items.at(-1)?.id } : {}) };
  };
}

describe('reading what is new of a feed', () => {
  for (const { rule, entries, known, pages, read, joined, next } of [
    { rule: 'an empty feed is known at once', entries: [], known: [], pages: 2, read: '', joined: true },
    { rule: 'everything of a short one', entries: [2, 1], known: [], pages: 2, read: '2 1', joined: true },
    {
      rule: 'no further than a page with a known entry',
      entries: [5, 4, 3, 2, 1],
      known: [3],
      pages: 9,
      read: '5 4 3',
      joined: true,
      next: '3',
    },
    {
      rule: 'the rest of that page too',
      entries: [5, 4, 3, 2],
      known: [5],
      pages: 9,
      read: '5 4 3',
      joined: true,
      next: '3',
    },
    {
      rule: 'page after page',
      entries: [7, 6, 5, 4, 3, 2, 1],
      known: [2],
      pages: 9,
      read: '7 6 5 4 3 2',
      joined: true,
      next: '2',
    },
    {
      rule: 'not more pages than allowed',
      entries: [7, 6, 5, 4, 3, 2, 1],
      known: [1],
      pages: 2,
      read: '7 6 5 4 3 2',
      joined: false,
      next: '2',
    },
  ] as const)
    it(rule, async () => {
      const seen: ReadonlySet<string> = new Set(known.map(String));
      const caught = await catchUp(feed(entries), (id) => seen.has(id), { pages });
      assert.equal(caught.items.map(({ id }) => id).join(' '), read);
      assert.deepEqual([caught.joined, caught.next], [joined, next]);
    });

  it('a page may be empty and still lead on: a filter found nothing there', async () => {
    const pages = [{ items: [], next: 'a' }, { items: [{ id: '1' }] }];
    const caught = await catchUp(
      async (cursor) => pages[cursor === undefined ? 0 : 1] ?? assert.fail(),
      () => false,
      { pages: 5 },
    );
    assert.deepEqual([caught.items, caught.joined], [[{ id: '1' }], true]);
  });
});

describe('the cursor that begins with a receipt', () => {
  for (const [tail, next] of [
    ['000000000001', '000000000002'],
    ['0000000000ff', '000000000100'],
    ['aaaaaaaaaaa9', 'aaaaaaaaaaaa'],
  ] as const)
    it(`${tail} is followed by ${next}`, () => {
      const cursor = cursorAt(`receipt_01890000-0000-7000-8000-${tail}`);
      assert.equal(cursor, `receipt_01890000-0000-7000-8000-${next}`);
      assert.match(cursor, RECEIPT_ID);
    });
});
