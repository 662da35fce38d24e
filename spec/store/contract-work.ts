import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type KeptAnswer, MAX_KEPT_BYTES, type PaymentRecord } from '../../src/payments/ledger/ledger.ts';
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
    });
  });
}

/** Engines may answer with any kind of byte array. */
function plain(kept: KeptAnswer | undefined) {
  return kept === undefined ? undefined : { ...kept, body: new Uint8Array(kept.body) };
}
