import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentRecord, PaymentState } from '../../src/payments/ledger/ledger.ts';
import { ANSWER_KEPT, REQUEST_MAY_BE_WRITTEN } from '../../src/payments/ledger/payment-receipt.ts';
import { holder, keptAnswer, move } from '../payments/ledger/samples.ts';
import { clockPast, done, type OpenStore, opened } from './opened.ts';

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
