import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type Keeping,
  type KeptAnswer,
  MAX_KEPT_BYTES,
  type PaymentLedger,
  type PaymentRecord,
  type PaymentState,
} from '../../src/payments/ledger/ledger.ts';
import { MOST_UNPAID } from '../../src/payments/ledger/unpaid.ts';
import { holder, keptAnswer, move, terms } from '../payments/ledger/samples.ts';
import { clockPast, done, LEASE_MS, type OpenStore, opened } from './opened.ts';

/** Renewed leases, kept answers, and the list of due work. */
export function workContract(name: string, open: OpenStore): void {
  describe(`${name}: renewing a lease`, () => {
    const { store, reserved } = opened(open);

    it('makes it last longer, and leaves all but its end as it was', async () => {
      const { ledger } = store();
      const record = await reserved();
      assert.equal(await ledger.renew(record, 2 * LEASE_MS), true);
      const renewed = (await ledger.read(record.payId)) ?? assert.fail();
      assert.ok(renewed.leaseUntil >= record.leaseUntil + LEASE_MS);
      assert.equal(renewed.dueAt, renewed.leaseUntil);
      const { leaseUntil, dueAt } = renewed;
      assert.deepEqual(renewed, { ...record, leaseUntil, dueAt });
    });

    it('does not hide a write whose reply was lost', async () => {
      const { ledger } = store();
      const command = move(await reserved(), 'settling');
      const first = done(await ledger.advance(command));
      assert.equal(await ledger.renew(first, LEASE_MS), true);
      assert.partialDeepStrictEqual(await ledger.advance(command), { kind: 'done', record: { step: command.step } });
    });

    it('is refused when it was given up, is over, is of another attempt or of no record, and changes nothing', async () => {
      const { ledger } = store();
      const given = done(await ledger.note({ ...holder(await reserved()), leaseMs: 0 }));
      const over = done(await ledger.note({ ...holder(await reserved()), leaseMs: 1 }));
      await clockPast(store, over.leaseUntil);
      const own = await reserved();
      const settled = done(
        await ledger.advance(move(done(await ledger.advance(move(await reserved(), 'settling'))), 'settled')),
      );
      const ended = done(await ledger.advance(move(settled, 'delivered')));
      const refused: readonly (readonly [PaymentRecord, Partial<PaymentRecord>])[] = [
        [given, {}],
        [over, {}],
        [ended, {}],
        [own, { owner: 'other' }],
        [own, { fence: 2 }],
      ];
      for (const [record, claim] of refused) {
        assert.equal(await ledger.renew({ ...record, ...claim }, LEASE_MS), false);
        assert.deepEqual(await ledger.read(record.payId), record);
      }
      assert.equal(await ledger.renew({ payId: terms().payId, owner: 'buyer', fence: 1 }, LEASE_MS), false);
      await assert.rejects(ledger.renew(own, -1), RangeError);
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

    it('is there once, whatever is asked of it or tried with it', async () => {
      const { ledger } = store();
      const record = await refusedAfter('worked');
      const { kind } = await ledger.reserve({ terms: record, owner: 'other', leaseMs: LEASE_MS });
      assert.equal(kind, 'completed');
      assert.equal((await ledger.advance(move(record, 'settling'))).kind, 'illegal');
      const listed = await ledger.unpaid(100);
      assert.equal(listed.filter(({ payId }) => payId === record.payId).length, 1);
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

    it('worked is never deleted, and has no transaction', async () => {
      const { ledger } = store();
      const worked = done(await ledger.advance(move(await reserved(), 'worked')));
      assert.deepEqual(await ledger.discard(holder(worked), []), { kind: 'illegal', state: 'worked' });
      const noted = await ledger.note({ ...holder(worked), leaseMs: 0, facts: { transaction: '0x1' } });
      assert.deepEqual(noted, { kind: 'illegal', state: 'worked' });
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

    it('are replaced by a later one, and not by a repeated command', async () => {
      const { ledger } = store();
      const record = await settled();
      const keep = (text: string, step: string) =>
        ledger.note({
          ...holder(record, step),
          leaseMs: LEASE_MS,
          keeping: { answer: keptAnswer(text), forMs: LEASE_MS },
        });
      await keep('first', 'one');
      await keep('second', 'two');
      await keep('never', 'two');
      assert.deepEqual(plain(await ledger.kept(record.payId)), keptAnswer('second'));
    });

    it('are not written by a command that is refused', async () => {
      const { ledger } = store();
      const record = await settled();
      const keeping = { answer: keptAnswer(), forMs: LEASE_MS };
      assert.equal(
        (await ledger.note({ ...holder({ ...record, owner: 'other' }), leaseMs: 0, keeping })).kind,
        'fenced',
      );
      assert.equal((await ledger.advance(move(record, 'refundDue', { keeping }))).kind, 'illegal');
      assert.equal(await ledger.kept(record.payId), undefined);
    });

    it('are refused, with all that came with them, when they are too large or kept for no whole time', async () => {
      const { ledger } = store();
      const record = await settled();
      for (const keeping of [
        { answer: keptAnswer(new Uint8Array(MAX_KEPT_BYTES + 1)), forMs: LEASE_MS },
        { answer: keptAnswer(), forMs: -1 },
        { answer: keptAnswer(), forMs: 0.5 },
      ]) {
        await assert.rejects(ledger.advance(move(record, 'delivered', { keeping })), RangeError);
        await assert.rejects(ledger.note({ ...holder(record), leaseMs: 0, keeping }), RangeError);
      }
      assert.deepEqual(await ledger.read(record.payId), record);
      assert.equal(await ledger.kept(record.payId), undefined);
    });

    it('stay for another time, longer or shorter, without being written again', async () => {
      const { ledger } = store();
      const record = await settled();
      const keep = (forMs: number, answer = {}) =>
        ledger.note({ ...holder(record), leaseMs: LEASE_MS, keeping: { forMs, ...answer } });
      const started = done(await keep(1, { answer: keptAnswer('first') }));
      done(await keep(LEASE_MS, { answer: keptAnswer('second') }));
      done(await keep(2 * LEASE_MS));
      await clockPast(store, started.changedAt + 1);
      assert.deepEqual(plain(await ledger.kept(record.payId)), keptAnswer('second'));
      done(await keep(1));
      await untilGone(ledger, record.payId);
    });

    it('are none when they are to be kept for no time', async () => {
      const { ledger } = store();
      const record = await settled();
      const keeping = { answer: keptAnswer(), forMs: LEASE_MS };
      done(await ledger.note({ ...holder(record), leaseMs: LEASE_MS, keeping }));
      done(await ledger.advance(move(record, 'delivered', { keeping: { forMs: 0 } })));
      assert.equal(await ledger.kept(record.payId), undefined);
    });

    it('that are not there, or no more, do not come back by a longer time', async () => {
      const { ledger } = store();
      const record = await settled();
      const keep = (keeping: Keeping) => ledger.note({ ...holder(record), leaseMs: LEASE_MS, keeping });
      done(await keep({ forMs: LEASE_MS }));
      assert.equal(await ledger.kept(record.payId), undefined);
      done(await keep({ answer: keptAnswer(), forMs: 1 }));
      await untilGone(ledger, record.payId);
      done(await keep({ forMs: LEASE_MS }));
      assert.equal(await ledger.kept(record.payId), undefined);
    });

    it('keep their time when a command is repeated or refused', async () => {
      const { ledger } = store();
      const record = await settled();
      const keep = (forMs: number, step: string, owner = record.owner) =>
        ledger.note({ ...holder({ ...record, owner }, step), leaseMs: LEASE_MS, keeping: { forMs } });
      const keeping = { answer: keptAnswer(), forMs: LEASE_MS };
      done(await ledger.note({ ...holder(record, 'one'), leaseMs: LEASE_MS, keeping }));
      done(await keep(0, 'one'));
      assert.equal((await keep(0, 'two', 'other')).kind, 'fenced');
      assert.deepEqual(plain(await ledger.kept(record.payId)), keptAnswer());
      for (const forMs of [-1, 0.5]) await assert.rejects(keep(forMs, 'three'), RangeError);
    });

    it('are gone when their time is over', async () => {
      const { ledger } = store();
      const record = await settled();
      const noted = done(
        await ledger.note({ ...holder(record), leaseMs: LEASE_MS, keeping: { answer: keptAnswer(), forMs: 1 } }),
      );
      // Redis lets a key live through the whole millisecond in which it ends.
      await clockPast(store, noted.changedAt + 2);
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

/** Redis forgets by a clock of its own, which is not the one in a record. */
async function untilGone(ledger: Pick<PaymentLedger, 'kept'>, payId: string): Promise<void> {
  while ((await ledger.kept(payId)) !== undefined);
}

/** Engines may answer with any kind of byte array. */
function plain(kept: KeptAnswer | undefined) {
  return kept === undefined ? undefined : { ...kept, body: new Uint8Array(kept.body) };
}
