import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import { receiptId } from '../../src/receipts/id.ts';
import type { Store, StoreLimits } from '../../src/store/store.ts';
import { event, holder, move, receipt, sha256, TRANSACTION, terms } from '../payments/ledger/samples.ts';

/** Small enough to be filled by a test. The ring of Redis may hold up to one node (100 entries) more. */
export const LIMITS: StoreLimits = { eventsMaxLength: 300, receiptsMaxLength: 20 };
const RING_SLACK = 100;
const LEASE_MS = 60_000;

/** Opens a store; stores opened by different merchants, or files, know nothing of each other. */
export type OpenStore = (merchantId?: string) => Promise<Store>;

/** What every engine owes its callers: the same suite runs against each. */
export function storeContract(name: string, open: OpenStore): void {
  describe(`${name}: the payment ledger`, () => {
    const { store, reserved } = opened(open);

    it('gives back what was reserved, number for number', async () => {
      const wanted = terms();
      await store().ledger.reserve({ terms: wanted, owner: 'buyer', leaseMs: LEASE_MS });
      const record = await store().ledger.read(wanted.payId);
      assert.partialDeepStrictEqual(record, { ...wanted, state: 'reserved', owner: 'buyer', fence: 1, tries: 0 });
    });

    it('knows nothing of an authorization that nobody brought', async () => {
      assert.equal(await store().ledger.read(sha256('nobody')), undefined);
    });

    it('lets one of a hundred equal proofs run', async () => {
      const wanted = terms();
      const answers = await Promise.all(
        Array.from({ length: 100 }, () =>
          store().ledger.reserve({ terms: wanted, owner: randomUUID(), leaseMs: LEASE_MS }),
        ),
      );
      assert.equal(answers.filter(({ kind }) => kind === 'run').length, 1);
      const busy = answers.filter((answer) => answer.kind === 'busy');
      assert.equal(busy.length, 99);
      for (const { leaseLeftMs } of busy) assert.ok(leaseLeftMs > LEASE_MS - 10_000 && leaseLeftMs <= LEASE_MS);
    });

    it('writes state, receipt and events of a transition together, in order', async () => {
      const { ledger, feed, receipts } = store();
      const record = await reserved();
      const { requestId } = record;
      const settling = done(
        await ledger.advance(move(record, 'settling', { events: [event('payment.verified', requestId)] })),
      );
      const settled = done(
        await ledger.advance(
          move(settling, 'settled', {
            receipt: receipt(record.receiptId, requestId),
            events: [event('payment.settled', requestId, { data: { transaction: TRANSACTION } })],
          }),
        ),
      );
      assert.equal(settled.state, 'settled');
      assert.equal(settled.transaction, TRANSACTION);
      assert.ok((settled.settledAt ?? 0) >= settled.reservedAt);
      const page = await feed.page({ limit: 10, requestId });
      assert.deepEqual(
        page.events.map(({ type }) => type),
        ['payment.settled', 'payment.verified'],
      );
      assert.deepEqual((await receipts.page({ limit: 10, requestId })).receipts, [
        receipt(record.receiptId, requestId),
      ]);
    });

    it('writes none of them when the transition is refused', async () => {
      const { ledger, feed, receipts } = store();
      const record = await reserved();
      const carried = {
        receipt: receipt(record.receiptId, record.requestId),
        events: [event('payment.settled', record.requestId)],
      };
      const strange = { ...record, owner: 'other' };
      assert.deepEqual(await ledger.advance(move(record, 'settled', carried)), { kind: 'illegal', state: 'reserved' });
      assert.deepEqual(await ledger.advance(move(strange, 'settling', carried)), { kind: 'fenced' });
      assert.deepEqual(await ledger.advance({ ...move(record, 'settling', carried), payId: sha256('gone') }), {
        kind: 'lost',
      });
      const settling = done(await ledger.advance(move(record, 'settling')));
      await assert.rejects(ledger.advance(move(settling, 'settled', { ...carried, facts: {} })), {
        name: 'LedgerCorruption',
      });
      assert.equal((await ledger.read(record.payId))?.state, 'settling');
      assert.deepEqual(await feed.page({ limit: 10, requestId: record.requestId }), { events: [] });
      assert.deepEqual(await receipts.page({ limit: 10, requestId: record.requestId }), { receipts: [] });
    });

    it('appends the events of a repeated command once', async () => {
      const { ledger, feed } = store();
      const record = await reserved();
      const command = move(record, 'settling', { events: [event('payment.verified', record.requestId)] });
      const answers = [await ledger.advance(command), await ledger.advance(command)];
      assert.deepEqual(answers[1], answers[0]);
      assert.equal((await feed.page({ limit: 10, requestId: record.requestId })).events.length, 1);
    });

    it('keeps a transaction that was written ahead', async () => {
      const { ledger } = store();
      const settling = done(await ledger.advance(move(await reserved(), 'settling')));
      await ledger.note(holder(settling), { transaction: TRANSACTION, rawTransaction: '0x02f8' }, LEASE_MS);
      assert.partialDeepStrictEqual(await ledger.read(settling.payId), {
        state: 'settling',
        transaction: TRANSACTION,
        rawTransaction: '0x02f8',
      });
    });

    it('forgets a discarded reservation, with its event, and lets the proof be used again', async () => {
      const { ledger, feed } = store();
      const record = await reserved();
      const held = holder(record);
      const events = [event('payment.rejected', record.requestId)];
      assert.deepEqual(await ledger.discard(held, events), { kind: 'gone' });
      assert.deepEqual(await ledger.discard(held, events), { kind: 'gone' });
      assert.equal(await ledger.read(record.payId), undefined);
      assert.equal((await feed.page({ limit: 10, requestId: record.requestId })).events.length, 1);
    });

    it('hands a released record to the next caller at once, fenced from the last', async () => {
      const { ledger } = store();
      const record = await reserved();
      const settling = done(await ledger.advance(move(record, 'settling')));
      await ledger.release(holder(settling));
      const taken = await ledger.reserve({ terms: record, owner: 'other', leaseMs: LEASE_MS });
      assert.partialDeepStrictEqual(taken, { kind: 'run', record: { state: 'settling', fence: 2, owner: 'other' } });
      assert.deepEqual(await ledger.note(holder(settling), {}, LEASE_MS), { kind: 'fenced' });
    });

    it('updates the receipt of a delivery that succeeds later', async () => {
      const { ledger, receipts } = store();
      const record = await reserved();
      const { receiptId: id, requestId } = record;
      let held = done(await ledger.advance(move(record, 'settling')));
      held = done(await ledger.advance(move(held, 'settled', { receipt: receipt(id, requestId) })));
      held = done(await ledger.advance(move(held, 'undelivered', { facts: { reason: 'timeout' } })));
      const last = receipt(id, requestId, { delivered: true, backendStatus: 200 });
      held = done(await ledger.advance(move(held, 'delivered', { receipt: last })));
      assert.partialDeepStrictEqual(held, { state: 'delivered', tries: 1, leaseUntil: 0, reason: 'timeout' });
      assert.deepEqual((await receipts.page({ limit: 10, requestId })).receipts, [last]);
      assert.equal((await ledger.reserve({ terms: record, owner: 'other', leaseMs: LEASE_MS })).kind, 'ended');
    });
  });

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
      assert.deepEqual(await feed.page({ limit: 5, requestId: 'nobody' }), { events: [] });
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

  describe(`${name}: the book of receipts`, () => {
    const { store } = opened(open);
    const id = (age: number) => receiptId(1_800_000_000_000 - age);

    it('is read newest first, filtered by request, resource and delivery', async () => {
      const { receipts } = store();
      const [old, middle, recent] = [id(30), id(20), id(10)];
      await receipts.write(receipt(middle, 'b', { delivered: true }));
      await receipts.write(receipt(old, 'a', { resourceId: 'rare' }));
      await receipts.write(receipt(recent, 'c'));
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
      for (const one of ids.toReversed()) await receipts.write(receipt(one, 'cap'));
      for (const one of ids.slice(-5)) await receipts.write(receipt(one, 'cap', { delivered: true }));
      const page = await receipts.page({ limit: 100 });
      assert.deepEqual(
        page.receipts.map((one) => one.id),
        ids.slice(-LIMITS.receiptsMaxLength).reverse(),
      );
      assert.equal(page.receipts.filter((one) => one.delivered).length, 5);
    });
  });

  describe(`${name}: health`, () => {
    const { store } = opened(open);
    it('is ok while it writes', async () => {
      assert.deepEqual(await store().check(), { status: 'ok' });
    });
  });
}

function opened(open: OpenStore) {
  let opening: Store | undefined;
  before(async () => {
    opening = await open(randomUUID());
  });
  after(() => opening?.close());
  const store = (): Store => opening ?? assert.fail('not open');
  const reserved = async (): Promise<PaymentRecord> => {
    const answer = await store().ledger.reserve({ terms: terms(), owner: 'buyer', leaseMs: LEASE_MS });
    return answer.kind === 'run' ? answer.record : assert.fail(answer.kind);
  };
  return { store, reserved };
}

function done(answer: { readonly kind: string; readonly record?: PaymentRecord }): PaymentRecord {
  return answer.kind === 'done' && answer.record !== undefined ? answer.record : assert.fail(answer.kind);
}

function place(id: string): readonly [number, number] {
  const [, ms, seq] = /^evt_(\d+)-(\d+)$/.exec(id) ?? assert.fail(id);
  return [Number(ms), Number(seq)];
}

function newestFirst(a: readonly [number, number], b: readonly [number, number]): number {
  return b[0] - a[0] || b[1] - a[1];
}
