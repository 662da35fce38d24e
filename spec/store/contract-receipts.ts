import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { receiptId } from '../../src/receipts/id.ts';
import { receipt } from '../payments/ledger/samples.ts';
import { LIMITS, type OpenStore, opened } from './opened.ts';

export function receiptContract(name: string, open: OpenStore): void {
  describe(`${name}: the book of receipts`, () => {
    const { store } = opened(open);
    const id = (age: number) => receiptId(1_800_000_000_000 - age);

    it('is read newest first, filtered by request, resource and delivery', async () => {
      const { receipts } = store();
      const [old, middle, recent] = [id(30), id(20), id(10)];
      await receipts.write([receipt(middle, 'b', { delivered: true })]);
      await receipts.write([receipt(old, 'a', { resourceId: 'rare' })]);
      await receipts.write([receipt(recent, 'c')]);
      const found = async (query: object) =>
        (await receipts.page({ limit: 50, ...query })).receipts.map((one) => one.id);
      assert.deepEqual(await found({}), [recent, middle, old]);
      assert.deepEqual(await found({ delivered: false }), [recent, old]);
      assert.deepEqual(await found({ delivered: true }), [middle]);
      assert.deepEqual(await found({ requestId: 'a' }), [old]);
      assert.deepEqual(await found({ resourceId: 'rare', delivered: true }), []);
      const first = await receipts.page({ limit: 2 });
      assert.equal(first.nextCursor, middle);
      const rest = await receipts.page({ limit: 2, cursor: middle });
      assert.deepEqual([rest.receipts.map((one) => one.id), rest.nextCursor], [[old], undefined]);
    });

    it('drops the oldest over its cap, by the time in their ids, and writes one id once', async () => {
      const { receipts } = store();
      const ids = Array.from({ length: LIMITS.receiptsMaxLength + 15 }, (_, i) => id(-1_000 - i));
      // Out of order: what counts is the receipt's own time, not when it was written.
      for (const one of ids.toReversed()) await receipts.write([receipt(one, 'cap')]);
      for (const one of ids.slice(-5)) await receipts.write([receipt(one, 'cap', { delivered: true })]);
      const page = await receipts.page({ limit: 100 });
      assert.deepEqual(
        page.receipts.map((one) => one.id),
        ids.slice(-LIMITS.receiptsMaxLength).reverse(),
      );
      assert.equal(page.receipts.filter((one) => one.delivered).length, 5);
    });
  });
}
