import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import {
  listsOf,
  type Receipt,
  type ReceiptBook,
  type ReceiptPayment,
  type ReceiptQuery,
  receiptId,
} from '../../src/receipts/receipt.ts';
import { DROPPED_AT_ONCE } from '../../src/store/port/commit.ts';
import { holder, move, PAYMENT, receipt, sha256, TRANSACTION } from '../payments/ledger/samples.ts';
import { idsIn, LEASE_MS, LIMITS, type OpenStore, opened } from './opened.ts';

const DELIVERED = { delivered: true } as const;

/** A payment of its own for each receipt. */
function paid(id: string, more: Partial<ReceiptPayment> = {}): { readonly payment: ReceiptPayment } {
  return { payment: { ...PAYMENT, replayKey: sha256(id), ...more } };
}

export function receiptContract(name: string, open: OpenStore): void {
  /** A book of its own for a test that fills it. */
  const empty = async (then: (book: ReceiptBook) => Promise<void>): Promise<void> => {
    const store = await open(randomUUID());
    try {
      await then(store.receipts);
    } finally {
      await store.close();
    }
  };
  const id = (age: number) => receiptId(1_800_000_000_000 - age);

  describe(`${name}: receipts`, () => {
    const { store, reserved } = opened(open);
    const found = async (query: Partial<ReceiptQuery>) =>
      (await store().receipts.page({ limit: 50, ...query })).receipts.map((one) => one.id);

    it('is read newest first, filtered by request, resource and delivery', async () => {
      const { receipts } = store();
      const [old, middle, recent] = [id(30), id(20), id(10)];
      await receipts.write([receipt(middle, 'b', DELIVERED)]);
      await receipts.write([receipt(old, 'a', { resourceId: 'rare' })]);
      await receipts.write([receipt(recent, 'c')]);
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

    it('is read by both requests of a resumed delivery, by call, and in pages where others chose the same id', async () => {
      const { receipts } = store();
      const [paid, stranger] = [id(2), id(1)];
      await receipts.write([receipt(paid, 'payer', { metadata: { callId: 'call_first' } })]);
      const metadata = { resumedFrom: 'payer', callId: 'call_second' };
      await receipts.write([receipt(paid, 'between', { metadata: { resumedFrom: 'payer' } })]);
      await receipts.write([receipt(paid, 'collector', { ...DELIVERED, metadata })]);
      await receipts.write([receipt(stranger, 'payer', { ...DELIVERED, metadata: { callId: 'call_other' } })]);
      assert.deepEqual(await found({ requestId: 'payer' }), [stranger, paid]);
      assert.deepEqual(await found({ requestId: 'collector' }), [paid]);
      assert.deepEqual(await found({ requestId: 'between' }), []);
      assert.deepEqual(await found({ callId: 'call_second' }), [paid]);
      assert.deepEqual(await found({ callId: 'call_first' }), []);
      assert.deepEqual(await found({ callId: 'payer' }), []);
      const first = await receipts.page({ limit: 1, requestId: 'payer' });
      assert.deepEqual([first.receipts[0]?.id, first.nextCursor], [stranger, stranger]);
      const rest = await receipts.page({ limit: 1, requestId: 'payer', cursor: stranger });
      assert.deepEqual([rest.receipts[0]?.id, rest.nextCursor], [paid, undefined]);
    });

    it('moves from list to list in the write of its payment', async () => {
      const { receipts } = store();
      const record = await reserved();
      const listed = async () => {
        const lists = await Promise.all([{ delivered: false }, { delivered: true }].map(found));
        return lists.map((list) => list.includes(record.receiptId));
      };
      const settling = await store().ledger.advance(move(record, 'settling'));
      assert.equal(settling.kind, 'done');
      const facts = { transaction: TRANSACTION, evidence: 'logs' } as const;
      const owed = { facts, leaseMs: LEASE_MS, receipt: receipt(record.receiptId, 'moving') };
      assert.equal((await store().ledger.advance(move(record, 'settled', owed))).kind, 'done');
      assert.deepEqual(await listed(), [true, false]);
      const before = await receipts.counts();
      const command = { ...holder(record), to: 'delivered', leaseMs: 0, events: [] } as const;
      const done = { ...command, receipt: receipt(record.receiptId, 'moving', DELIVERED) };
      assert.equal((await store().ledger.advance(done)).kind, 'done');
      assert.deepEqual(await listed(), [false, true]);
      const after = await receipts.counts();
      assert.deepEqual([after.owed, after.done], [before.owed - 1, before.done + 1]);
    });

    it('lists what is uncertain apart, until it is known', async () => {
      const { receipts } = store();
      const [payment, delivery] = [id(5), id(4)];
      await receipts.write([receipt(payment, 'u', paid(payment, { status: 'unknown' }))]);
      await receipts.write([receipt(delivery, 'u', { ...paid(delivery), metadata: { deliveryUncertain: true } })]);
      assert.deepEqual(await found({ uncertain: 'payment' }), [payment]);
      assert.deepEqual(await found({ uncertain: 'delivery' }), [delivery]);
      const both = await found({ delivered: false, requestId: 'u' });
      assert.deepEqual(both, [delivery, payment]);
      assert.equal((await receipts.counts()).uncertain, 2);
      await receipts.write([receipt(payment, 'u', paid(payment))]);
      await receipts.write([receipt(delivery, 'u', { ...paid(delivery), ...DELIVERED })]);
      assert.deepEqual(await found({ uncertain: 'payment' }), []);
      assert.deepEqual(await found({ uncertain: 'delivery' }), []);
      assert.equal((await receipts.counts()).uncertain, 0);
    });

    it('adds new receipts, and replaces none that is known better', async () => {
      const { receipts } = store();
      const [known, fresh] = [id(7), id(6)];
      await receipts.write([receipt(known, 'add', DELIVERED)]);
      assert.deepEqual(await receipts.add([receipt(known, 'add'), receipt(fresh, 'add')]), [fresh]);
      const page = await receipts.page({ limit: 5, requestId: 'add' });
      assert.deepEqual(
        page.receipts.map((one) => [one.id, one.delivered]),
        [
          [fresh, false],
          [known, true],
        ],
      );
    });

    it('has one receipt of a payment, under whichever ids it is written', async () => {
      const { receipts } = store();
      const [rebuilt, own, late] = [id(9), id(8), id(7)];
      const once = paid('one payment');
      const one = async () => (await receipts.page({ limit: 5, payment: once.payment.replayKey })).receipts;
      assert.deepEqual(await receipts.add([receipt(rebuilt, 'chain', once)]), [rebuilt]);
      assert.deepEqual(await receipts.add([receipt(late, 'chain', once)]), []);
      await receipts.write([receipt(own, 'buyer', { ...once, ...DELIVERED })]);
      assert.deepEqual(await receipts.add([receipt(rebuilt, 'chain', once)]), []);
      assert.deepEqual(
        (await one()).map((found) => [found.id, found.delivered]),
        [[own, true]],
      );
      assert.deepEqual(await found({ requestId: 'chain' }), []);
      assert.ok(!(await found({ delivered: false })).includes(rebuilt));
    });
  });

  describe(`${name}: the bounds of the book`, () => {
    it('drops the oldest delivered ones over its cap, by the time in their ids, counts them, and writes one id once', () =>
      empty(async (receipts) => {
        const ids = Array.from({ length: LIMITS.receiptsMaxLength + 15 }, (_, i) => id(-1_000 - i));
        // Out of order: what counts is the receipt's own time, not when it was written.
        for (const one of ids.toReversed()) await receipts.write([receipt(one, 'cap', DELIVERED)]);
        for (const one of ids.slice(-5)) await receipts.write([receipt(one, 'again', DELIVERED)]);
        const page = await receipts.page({ limit: 100 });
        assert.deepEqual(idsIn(page), ids.slice(-LIMITS.receiptsMaxLength).reverse());
        assert.equal(page.receipts.filter((one) => one.requestId === 'again').length, 5);
        assert.deepEqual(receipts.trimmed(), { length: 15, age: 0 });
        const range = (await receipts.trimmedRange()) ?? assert.fail();
        assert.ok(range.from <= range.to && range.to < (ids.at(-LIMITS.receiptsMaxLength) ?? ''));
        const dropped = await receipts.page({ limit: 100, requestId: 'cap' });
        assert.equal(dropped.receipts.length, LIMITS.receiptsMaxLength - 5);
      }));

    it('never drops what is owed, however old and however many, and drops it once it is delivered', () =>
      empty(async (receipts) => {
        const owed = Array.from({ length: 3 * LIMITS.receiptsMaxLength }, (_, i) => id(90_000 - i));
        const done = Array.from({ length: 2 * LIMITS.receiptsMaxLength }, (_, i) => id(9_000 - i));
        await receipts.write(owed.map((one) => receipt(one, 'owed')));
        for (const one of done) await receipts.write([receipt(one, 'done', DELIVERED)]);
        const page = await receipts.page({ limit: 500, delivered: false });
        assert.deepEqual(idsIn(page), owed.toReversed());
        assert.deepEqual(await receipts.counts(), { done: LIMITS.receiptsMaxLength, owed: owed.length, uncertain: 0 });
        const [first] = owed;
        await receipts.write([receipt(first ?? assert.fail(), 'owed', DELIVERED)]);
        const left = await receipts.page({ limit: 500, requestId: 'owed' });
        assert.ok(left.receipts.every((one) => one.id !== first));
      }));

    it('drops in short steps what was over the bounds before', async () => {
      const backend = randomUUID();
      const store = await open(backend);
      const many = Array.from({ length: DROPPED_AT_ONCE + LIMITS.receiptsMaxLength + 1 }, (_, i) => id(5_000 - i));
      await store.receipts.write(many.map((one) => receipt(one, 'many', DELIVERED)));
      assert.equal((await store.receipts.counts()).done, LIMITS.receiptsMaxLength + 1);
      assert.equal(await store.tidy(), false);
      assert.equal((await store.receipts.counts()).done, LIMITS.receiptsMaxLength);
      assert.deepEqual(store.receipts.trimmed(), { length: DROPPED_AT_ONCE + 1, age: 0 });
      await store.close();
    });

    it('keeps lists equal to the receipts themselves, whatever is written', () =>
      empty(async (receipts) => {
        const shown = new Map<string, Receipt>();
        const ids = Array.from({ length: 12 }, (_, i) => id(700 - i));
        for (let step = 0; step < 200; step += 1) {
          const one = ids[(step * 7 + (step >> 3)) % ids.length] ?? assert.fail();
          const written = receipt(one, `r${step % 7}`, {
            delivered: step % 3 === 0,
            ...paid(one, { status: step % 5 === 0 ? 'unknown' : 'settled' }),
            ...(step % 4 === 0
              ? { metadata: { deliveryUncertain: true, resumedFrom: `r${step % 5}`, callId: `c${step % 6}` } }
              : {}),
          });
          await receipts.write([written]);
          shown.set(one, written);
          if (step % 20 !== 19) continue;
          const all = [...shown.values()].sort((a, b) => (a.id < b.id ? 1 : -1));
          const same = async (query: Partial<ReceiptQuery>, of: (one: Receipt) => boolean) =>
            assert.deepEqual(
              (await receipts.page({ limit: 50, ...query })).receipts,
              all.filter(of),
              JSON.stringify(query),
            );
          await same({}, () => true);
          await same({ delivered: true }, (r) => listsOf(r).includes('done'));
          await same({ delivered: false }, (r) => listsOf(r).includes('owed'));
          for (let n = 0; n < 7; n += 1) {
            const name = `r${n}`;
            await same({ requestId: name }, (r) => r.requestId === name || r.metadata?.resumedFrom === name);
            await same({ callId: `c${n}` }, (r) => r.metadata?.callId === `c${n}`);
          }
          const counts = await receipts.counts();
          assert.equal(counts.uncertain, all.filter((r) => listsOf(r).includes('uncertain')).length);
          assert.equal(counts.owed + counts.done, all.length);
        }
      }));
  });
}
