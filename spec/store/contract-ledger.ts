import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { MOST_UNPAID } from '../../src/payments/ledger/document-ledger.ts';
import {
  type Keeping,
  type KeptAnswer,
  MAX_KEPT_BYTES,
  type PaymentRecord,
  type PaymentState,
} from '../../src/payments/ledger/ledger.ts';
import { ANSWER_KEPT, REQUEST_MAY_BE_WRITTEN } from '../../src/payments/ledger/payment-receipt.ts';
import { fencingToken } from '../../src/payments/settlement/attempt.ts';
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
import { clockPast, done, LEASE_MS, type OpenStore, opened } from './opened.ts';

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
      const types = events.map(({ type }) => type);
      assert.deepEqual(types, ['payment.verified']);
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
      const types = page.events.map(({ type }) => type);
      assert.deepEqual(types, ['payment.settled', 'payment.verified']);
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
  });
}

/** Renewed leases, kept answers, and the list of due work. */
export function workContract(name: string, open: OpenStore): void {
  describe(`${name}: renewing a lease`, () => {
    const { store, reserved } = opened(open);

    it('does not hide a write whose reply was lost', async () => {
      const { ledger } = store();
      const command = move(await reserved(), 'settling');
      const first = done(await ledger.advance(command));
      assert.equal(await ledger.renew(first, LEASE_MS), true);
      assert.partialDeepStrictEqual(await ledger.advance(command), { kind: 'done', record: { step: command.step } });
    });
  });

  describe(`${name}: unpaid work`, () => {
    const { store, reserved } = opened(open);
    const refusedAfter = async (...states: readonly PaymentState[]): Promise<PaymentRecord> => {
      let record = await reserved();
      for (const state of [...states, 'refused'] as const)
        record = done(await store().ledger.advance(move(record, state)));
      // So that no two of them have one time.
      await clockPast(store, record.changedAt);
      return record;
    };

    it('is what was worked and then refused, the latest first, as many as are asked for', async () => {
      const { ledger } = store();
      assert.deepEqual(await ledger.unpaid(10), []);
      const first = await refusedAfter('worked');
      const second = await refusedAfter('worked', 'settling');
      const third = await refusedAfter('worked', 'settling', 'withdrawn', 'settling');
      await refusedAfter('settling');
      done(await ledger.advance(move(await reserved(), 'worked')));
      const paid = done(await ledger.advance(move(await reserved(), 'worked')));
      const settling = done(await ledger.advance(move(paid, 'settling')));
      done(await ledger.advance(move(settling, 'settled')));
      assert.deepEqual(await ledger.unpaid(10), [third, second, first]);
      assert.deepEqual(await ledger.unpaid(2), [third, second]);
      assert.deepEqual(await ledger.unpaid(0), []);
    });

    it('is listed up to its bound, whatever is asked for', async () => {
      const { ledger } = store();
      const make = async (): Promise<void> => {
        const worked = done(await ledger.advance(move(await reserved(), 'worked')));
        done(await ledger.advance(move(worked, 'refused')));
      };
      // A few at a time: a store has a bound for each command.
      for (let made = 0; made <= MOST_UNPAID; made += 40) await Promise.all(Array.from({ length: 40 }, make));
      assert.equal((await ledger.unpaid(2 * MOST_UNPAID)).length, MOST_UNPAID);
    });

    it('worked comes with the status of the answer, settling may, and nothing else', async () => {
      const { ledger } = store();
      const record = await reserved();
      const corrupt = { name: 'LedgerCorruption' };
      await assert.rejects(ledger.advance(move(record, 'worked', { facts: {} })), corrupt);
      await assert.rejects(ledger.note({ ...holder(record), leaseMs: 0, facts: { answered: 200 } }), corrupt);
      await assert.rejects(ledger.advance(move(record, 'worked', { facts: { answered: 0 } })), corrupt);
      assert.deepEqual(await ledger.read(record.payId), record);
      const worked = done(await ledger.advance(move(record, 'worked', { facts: { answered: 201 } })));
      assert.equal(done(await ledger.advance(move(worked, 'settling'))).answered, 201);
      const begun = await ledger.advance(move(await reserved(), 'settling', { facts: { answered: 202 } }));
      const settling = done(begun);
      assert.equal(settling.answered, 202);
      await assert.rejects(
        ledger.advance(move(settling, 'settled', { facts: { evidence: 'claim', transaction: '0x1', answered: 202 } })),
        corrupt,
      );
    });
  });

  describe(`${name}: kept answers`, () => {
    const { store, reserved } = opened(open);
    const settled = async (): Promise<PaymentRecord> => {
      const settling = done(await store().ledger.advance(move(await reserved(), 'settling')));
      return done(await store().ledger.advance(move(settling, 'settled')));
    };

    it('come with a change of state, or a note, byte for byte', async () => {
      const { ledger } = store();
      const everyByte = Uint8Array.from({ length: 256 }, (_, i) => i);
      const largest = new Uint8Array(MAX_KEPT_BYTES).fill(0xff);
      for (const body of [new Uint8Array(), everyByte, largest]) {
        const keeping = { answer: keptAnswer(body), forMs: LEASE_MS };
        const delivered = await settled();
        assert.equal(await ledger.kept(delivered.payId), undefined);
        done(await ledger.advance(move(delivered, 'delivered', { keeping })));
        assert.deepEqual(plain(await ledger.kept(delivered.payId)), keeping.answer);
        const noted = await settled();
        done(await ledger.note({ ...holder(noted), leaseMs: 0, keeping }));
        assert.deepEqual(plain(await ledger.kept(noted.payId)), keeping.answer);
      }
    });

    it('are replaced by a later one, and neither they nor their time by a repeated or a refused command', async () => {
      const { ledger } = store();
      const record = await settled();
      const keep = (keeping: Keeping, step: string, owner = record.owner) =>
        ledger.note({ ...holder({ ...record, owner }, step), leaseMs: LEASE_MS, keeping });
      const answering = (text: string) => ({ answer: keptAnswer(text), forMs: LEASE_MS });
      assert.equal((await keep(answering('refused'), 'one', 'other')).kind, 'fenced');
      assert.equal(
        (await ledger.advance(move(record, 'refundDue', { keeping: answering('illegal') }))).kind,
        'illegal',
      );
      assert.equal(await ledger.kept(record.payId), undefined);
      for (const [text, step] of [
        ['first', 'one'],
        ['second', 'two'],
        ['never', 'two'],
      ] as const)
        done(await keep(answering(text), step));
      done(await keep({ forMs: 0 }, 'two'));
      assert.equal((await keep({ forMs: 0 }, 'three', 'other')).kind, 'fenced');
      assert.deepEqual(plain(await ledger.kept(record.payId)), keptAnswer('second'));
    });

    it('are refused, with all that came with them, when they are too large or kept for no whole time', async () => {
      const { ledger } = store();
      const record = await settled();
      for (const keeping of [
        { answer: keptAnswer(new Uint8Array(MAX_KEPT_BYTES + 1)), forMs: LEASE_MS },
        { answer: keptAnswer(), forMs: -1 },
        { forMs: 0.5 },
      ]) {
        await assert.rejects(ledger.advance(move(record, 'delivered', { keeping })), RangeError);
        await assert.rejects(ledger.note({ ...holder(record), leaseMs: 0, keeping }), RangeError);
      }
      assert.deepEqual(await ledger.read(record.payId), record);
      assert.equal(await ledger.kept(record.payId), undefined);
    });

    it('stay for another time, longer or shorter, without being written again, and do not come back', async () => {
      const { ledger } = store();
      const record = await settled();
      const keep = async (keeping: Keeping) =>
        done(await ledger.note({ ...holder(record), leaseMs: LEASE_MS, keeping }));
      await keep({ forMs: LEASE_MS });
      assert.equal(await ledger.kept(record.payId), undefined, 'none was there');
      const started = await keep({ answer: keptAnswer('first'), forMs: 1 });
      await keep({ answer: keptAnswer('second'), forMs: LEASE_MS });
      await keep({ forMs: 2 * LEASE_MS });
      await clockPast(store, started.changedAt + 1);
      assert.deepEqual(plain(await ledger.kept(record.payId)), keptAnswer('second'));
      const last = await keep({ forMs: 1 });
      // Redis lets a key live through the whole millisecond in which it ends.
      await clockPast(store, last.changedAt + 2);
      assert.equal(await ledger.kept(record.payId), undefined);
      await keep({ forMs: LEASE_MS });
      assert.equal(await ledger.kept(record.payId), undefined);
    });

    it('are none when they are to be kept for no time', async () => {
      const { ledger } = store();
      const record = await settled();
      const keeping = { answer: keptAnswer(), forMs: LEASE_MS };
      done(await ledger.note({ ...holder(record), leaseMs: LEASE_MS, keeping }));
      done(await ledger.advance(move(record, 'delivered', { keeping: { forMs: 0 } })));
      assert.equal(await ledger.kept(record.payId), undefined);
    });
  });

  describe(`${name}: what is due`, () => {
    const { store, reserved } = opened(open);
    const dueIds = async (limit = 100) => (await store().ledger.due(limit)).map(({ payId }) => payId);

    it('lists whole records whose time has come, the longest overdue first, no more than asked for', async () => {
      const { ledger } = store();
      const released: PaymentRecord[] = [];
      for (let i = 0; i < 5; i += 1) {
        const record = done(await ledger.note({ ...holder(await reserved()), leaseMs: 0 }));
        released.push(record);
        // Each in a millisecond of its own, so that the order is not a matter of chance.
        await clockPast(store, record.dueAt);
      }
      assert.deepEqual(await ledger.due(100), released);
      assert.deepEqual(await ledger.due(3), released.slice(0, 3));
    });

    it('leaves out what is leased, paused, ended or gone', async () => {
      const { ledger } = store();
      const leased = await reserved();
      const paused = done(await ledger.note({ ...holder(await reserved()), leaseMs: 0, againMs: LEASE_MS }));
      const settling = done(await ledger.advance(move(await reserved(), 'settling', { leaseMs: 0 })));
      const refused = done(await ledger.advance({ ...move(settling, 'refused'), leaseMs: 0 }));
      const discarded = done(await ledger.note({ ...holder(await reserved()), leaseMs: 0 }));
      await ledger.discard(holder(discarded), []);
      const taken = done(await ledger.note({ ...holder(await reserved()), leaseMs: 0 }));
      assert.ok((await dueIds()).includes(taken.payId));
      await ledger.reserve({ terms: taken, owner: 'other', leaseMs: LEASE_MS });
      const listed = await dueIds();
      for (const { payId } of [leased, paused, refused, discarded, taken]) assert.ok(!listed.includes(payId));
      // The clock of a quick store is read some hundred times, and each look leaves a reservation.
      const soon = (await ledger.due(10_000, 2 * LEASE_MS)).map(({ payId }) => payId);
      assert.deepEqual(
        [leased, paused, refused, discarded, taken].map(({ payId }) => soon.includes(payId)),
        [true, true, false, false, true],
        'but for what becomes due within the time that is asked for',
      );
    });
  });
}

/** Engines may answer with any kind of byte array. */
function plain(kept: KeptAnswer | undefined) {
  return kept === undefined ? undefined : { ...kept, body: new Uint8Array(kept.body) };
}

/** The census: how many payments stand open, and how. */
export function censusContract(name: string, open: OpenStore): void {
  describe(`${name}: the census`, () => {
    const { store, reserved } = opened(open);
    const through = async (...states: readonly PaymentState[]): Promise<PaymentRecord> => {
      let record = await reserved();
      for (const state of states) record = done(await store().ledger.advance(move(record, state)));
      return record;
    };

    it('counts nothing in an empty store', async () => {
      assert.deepEqual(await store().census(), { open: 0, uncertain: 0, undelivered: 0 });
    });

    it('counts open payments, uncertain ones as soon as their lease is over, and undelivered ones', async () => {
      await through();
      await through('worked');
      await through('settling');
      await through('settling', 'settled');
      await through('settling', 'settled', 'undelivered');
      await through('settling', 'settled', 'undelivered');
      // Final: nothing of these is open.
      await through('settling', 'refused');
      await through('worked', 'refused');
      await through('settling', 'settled', 'delivered');
      await through('settling', 'settled', 'undelivered', 'refundDue');
      await through('settling', 'settled', 'undelivered', 'refundDue', 'refunding');
      await through('settling', 'settled', 'undelivered', 'refundDue', 'refunding', 'refunded');
      assert.deepEqual(await store().census(), { open: 6, uncertain: 0, undelivered: 2 });
      const left = done(await store().ledger.note({ ...holder(await through('settling')), leaseMs: 1 }));
      await clockPast(store, left.leaseUntil);
      const { uncertain, undelivered } = await store().census();
      assert.deepEqual({ uncertain, undelivered }, { uncertain: 1, undelivered: 2 });
    });

    it('does not count one as undelivered while its answer is kept, until it has to be fetched again', async () => {
      const undelivered = async (): Promise<number> => (await store().census()).undelivered;
      const before = await undelivered();
      const facts = { reason: ANSWER_KEPT };
      const keeping = { answer: keptAnswer(), forMs: 60_000 };
      const paid = await through('settling', 'settled');
      const kept = done(await store().ledger.advance(move(paid, 'undelivered', { facts, keeping })));
      assert.equal(await undelivered(), before);
      done(await store().ledger.note({ ...holder(kept), facts: { reason: REQUEST_MAY_BE_WRITTEN }, leaseMs: 1 }));
      assert.equal(await undelivered(), before + 1);
    });
  });
}
