import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { fencingToken } from '../../src/payments/ledger/ledger.ts';
import {
  event,
  holder,
  keptAnswer,
  move,
  receipt,
  recordIn,
  sha256,
  TRANSACTION,
  terms,
} from '../payments/ledger/samples.ts';
import { done, LEASE_MS, type OpenStore, opened } from './opened.ts';

const CORRUPT = { name: 'LedgerCorruption' };

export function ledgerContract(name: string, open: OpenStore): void {
  describe(`${name}: the payment ledger`, () => {
    const { store, reserved } = opened(open);

    it('gives back what was reserved, number for number', async () => {
      const wanted = terms();
      await store().ledger.reserve({ terms: wanted, owner: 'buyer', leaseMs: LEASE_MS });
      const record = await store().ledger.read(wanted.payId);
      assert.partialDeepStrictEqual(record, { ...wanted, state: 'reserved', owner: 'buyer', fence: 1, tries: 0 });
    });

    it('claims a verified payment as settling with its events, which a take-over does not write again', async () => {
      const { ledger, feed } = store();
      const wanted = terms();
      const { requestId } = wanted;
      const verified = { untilMs: Number.MAX_SAFE_INTEGER, events: [event('payment.verified', requestId)] };
      const claim = { terms: wanted, owner: 'buyer', leaseMs: 1, verified };
      const record = recordIn(await ledger.reserve(claim));
      assert.partialDeepStrictEqual(record, { state: 'settling', fence: 1 });
      await ledger.note({ ...fencingToken(record), leaseMs: 0 });
      const taken = recordIn(await ledger.reserve({ ...claim, owner: 'other' }));
      assert.partialDeepStrictEqual(taken, { state: 'settling', fence: 2 });
      const late = { ...claim, terms: terms(), verified: { ...verified, untilMs: 0 } };
      assert.equal(recordIn(await ledger.reserve(late)).state, 'reserved');
      const { events } = await feed.page({ limit: 10, requestId });
      assert.deepEqual(
        events.map(({ type }) => type),
        ['payment.verified'],
      );
    });

    it('has no record of an unknown authorization', async () => {
      assert.equal(await store().ledger.read(sha256('unknown')), undefined);
    });

    it('lets one of a hundred equal proofs run', async () => {
      const wanted = terms();
      const answers = await Promise.all(
        Array.from({ length: 100 }, () =>
          store().ledger.reserve({ terms: wanted, owner: randomUUID(), leaseMs: LEASE_MS }),
        ),
      );
      assert.equal(answers.filter(({ kind }) => kind === 'granted').length, 1);
      const busy = answers.filter((answer) => answer.kind === 'in_flight');
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
      await assert.rejects(ledger.advance(move(settling, 'settled', { ...carried, facts: {} })), CORRUPT);
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
      await ledger.note({
        ...holder(settling),
        facts: { transaction: TRANSACTION, rawTransaction: '0x02f8' },
        leaseMs: LEASE_MS,
      });
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

    it('remembers a refusal of the provider, for this proof, with its first reason and until its end', async () => {
      const { ledger } = store();
      const record = await reserved();
      const [proof, forged] = [record.payId.slice(0, 22), record.payId.slice(22, 44)];
      const refusal = { proof, reason: 'insufficient_funds', until: record.validBefore * 1_000, atMostMs: 600_000 };
      assert.deepEqual(await ledger.discard(holder(record), [], refusal), { kind: 'gone' });
      assert.deepEqual(await ledger.discard(holder(record), [], { ...refusal, reason: 'later' }), { kind: 'gone' });
      const again = { terms: record, owner: 'copy', leaseMs: LEASE_MS };
      assert.deepEqual(await ledger.reserve({ ...again, proof }), { kind: 'refused', reason: 'insufficient_funds' });
      assert.equal(await ledger.read(record.payId), undefined);
      // A forged copy of an authorization has no effect on the good one.
      const other = recordIn(await ledger.reserve({ ...again, proof: forged }));
      const over = { ...refusal, proof: forged, until: 1 };
      assert.deepEqual(await ledger.discard(holder(other), [], over), { kind: 'gone' });
      assert.equal((await ledger.reserve({ ...again, proof: forged })).kind, 'granted');
      // Now there is a record, and its state decides.
      assert.equal((await ledger.reserve({ ...again, proof })).kind, 'granted');
    });

    it('hands a released record to the next caller at once, fenced from the last', async () => {
      const { ledger } = store();
      const record = await reserved();
      const settling = done(await ledger.advance(move(record, 'settling')));
      await ledger.note({ ...holder(settling), leaseMs: 0 });
      const taken = await ledger.reserve({ terms: record, owner: 'other', leaseMs: LEASE_MS });
      assert.partialDeepStrictEqual(taken, {
        kind: 'granted',
        record: { state: 'settling', fence: 2, owner: 'other' },
      });
      assert.deepEqual(await ledger.note({ ...holder(settling), leaseMs: LEASE_MS }), { kind: 'fenced' });
    });

    it('writes what is meant for an unchanged record alone over no other write, and once', async () => {
      const { ledger } = store();
      const seen = done(await ledger.advance(move(await reserved(), 'settling')));
      const alone = { ...fencingToken(seen), leaseMs: LEASE_MS, unchanged: true as const };
      const first = { ...alone, step: 'first' };
      const noted = done(await ledger.note(first));
      assert.deepEqual(await ledger.note(first), { kind: 'done', record: noted });
      for (const seenBy of [
        { ...alone, step: 'second' },
        { ...holder(seen), leaseMs: 0, unchanged: true as const },
      ])
        assert.deepEqual(await ledger.note(seenBy), { kind: 'fenced' });
      assert.deepEqual(await ledger.advance({ ...move(seen, 'settled'), ...alone }), { kind: 'fenced' });
      assert.deepEqual(await ledger.read(seen.payId), noted);
    });

    it('appends the events of a note, once', async () => {
      const { ledger, feed } = store();
      const record = await reserved();
      const command = { ...holder(record), leaseMs: LEASE_MS, events: [event('backend.called', record.requestId)] };
      const answers = [await ledger.note(command), await ledger.note(command)];
      assert.deepEqual(answers[1], answers[0]);
      assert.equal((await feed.page({ limit: 10, requestId: record.requestId })).events.length, 1);
    });

    it('guards a record with the key that came first', async () => {
      const { ledger } = store();
      const wanted = terms(undefined, { keyDigest: sha256('key') });
      const asking = (keyDigest?: string) => {
        const { keyDigest: _own, ...rest } = wanted;
        const asked = keyDigest === undefined ? rest : { ...rest, keyDigest };
        return ledger.reserve({ terms: asked, owner: randomUUID(), leaseMs: 0 });
      };
      assert.equal((await asking(sha256('key'))).kind, 'granted');
      assert.equal((await ledger.read(wanted.payId))?.keyDigest, sha256('key'));
      for (const strange of [undefined, sha256('other key')])
        assert.partialDeepStrictEqual(await asking(strange), {
          kind: 'guarded',
          record: { payId: wanted.payId, fence: 1 },
        });
      assert.partialDeepStrictEqual(await asking(sha256('key')), { kind: 'granted', record: { fence: 2 } });
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
      assert.equal((await ledger.reserve({ terms: record, owner: 'other', leaseMs: LEASE_MS })).kind, 'completed');
    });

    it('writes no evidence that does not fit, and nothing that came with it', async () => {
      const { ledger, feed } = store();
      const settling = done(await ledger.advance(move(await reserved(), 'settling')));
      const { payId, requestId } = settling;
      const events = [event('payment.settled', requestId)];
      const keeping = { answer: keptAnswer(), forMs: LEASE_MS };
      for (const facts of [
        {},
        { evidence: 'logs' },
        { evidence: 'expired', transaction: TRANSACTION },
        { transaction: TRANSACTION },
      ] as const)
        await assert.rejects(ledger.advance(move(settling, 'settled', { facts, events, keeping })), CORRUPT);
      for (const facts of [{}, { evidence: 'unsent' }, { evidence: 'claim', reason: 'used' }] as const)
        await assert.rejects(ledger.advance(move(settling, 'refused', { facts, events, keeping })), CORRUPT);
      await assert.rejects(
        ledger.note({ ...holder(settling), leaseMs: 0, facts: { evidence: 'logs' }, events, keeping }),
        CORRUPT,
      );
      assert.deepEqual(await ledger.read(payId), settling);
      assert.equal(await ledger.kept(payId), undefined);
      assert.deepEqual(await feed.page({ limit: 10, requestId }), { events: [] });
    });

    it('remembers evidence and a recovery', async () => {
      const { ledger } = store();
      const settling = done(await ledger.advance(move(await reserved(), 'settling')));
      const facts = { evidence: 'operator', recovered: 'chain' } as const;
      const settled = done(await ledger.advance(move(settling, 'settled', { facts })));
      assert.deepEqual(await ledger.read(settled.payId), settled);
      assert.partialDeepStrictEqual(settled, facts);
      assert.equal(settled.transaction, undefined);
    });
  });
}
