import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { LEASE_MS } from '../../../src/payments/settlement/reservations.ts';
import type { Paid } from '../../../src/payments/settlement/settlement-request.ts';
import { type Bench, reconcilerBench } from './reconciler-bench.ts';
import { type FAILED, freshTerms, worldOfEachTest } from './world.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;

describe('the reconciler and what was never delivered', () => {
  const world = worldOfEachTest();
  const { settleOnce, pay, later, record, state, receipts } = world;
  let bench: Bench;
  beforeEach(() => {
    bench = reconcilerBench(world);
  });
  const round = (): Promise<void> => bench.open().round();
  const undelivered = async (more: Partial<typeof FAILED> | { readonly repeatable: boolean } = {}): Promise<Paid> => {
    const result = await pay();
    await world.failDelivery(result, { backendStatus: 500, ...more });
    return result;
  };

  it('a backend that has failed six times, with growing pauses, is asked only for the buyer', async () => {
    bench.answers = false;
    await undelivered();
    const calls: number[] = [];
    for (let second = 0; second <= 3_600; second += 1) {
      const before = bench.delivered.length;
      await round();
      if (bench.delivered.length > before) calls.push(second);
      later(1_000);
    }
    assert.deepEqual(calls, [1, 3, 7, 15, 31]);
    const { state, dueAt = 0, settledAt = 0, tries } = (await record()) ?? {};
    assert.deepEqual([state, tries, dueAt], ['undelivered', 6, settledAt + DAY_MS]);
    bench.answers = true;
    assert.equal((await settleOnce()).kind, 'paid', 'the buyer may still ask');
  });

  describe('what was not collected', () => {
    for (const repeatable of [true, false])
      it(`${repeatable ? 'and the backend never answered' : 'and may not be sent again'} is due for a refund after a day`, async () => {
        bench.repeatable = repeatable;
        bench.answers = false;
        await undelivered({ repeatable });
        for (let hour = 0; hour < 24; hour += 1) {
          for (let minute = 0; minute < 10; minute += 1) await round();
          assert.equal(await state(), 'undelivered', `hour ${hour}`);
          later(hour === 23 ? 3_600_000 - 1 : 3_600_000);
        }
        await round();
        assert.equal(await state(), 'undelivered');
        for (let minute = 0; minute < 5; minute += 1) {
          later(60_000);
          await round();
        }
        assert.equal(await state(), 'refundDue');
        const [receipt, ...others] = await receipts();
        const metadata = { callId: world.terms.callId, refundDue: true };
        assert.deepEqual([receipt?.delivered, receipt?.metadata, others.length], [false, metadata, 0]);
        assert.equal(await world.countOf('payment.settled'), 1);
        const result = await settleOnce();
        assert.ok(result.kind === 'spent' && result.state === 'refundDue');
      });

    it('a hundred failed deliveries of a purchase without a secret are none: an onlooker may have caused them', async () => {
      for (let attempt = 0; attempt < 100; attempt += 1) await undelivered();
      later(3_600_000);
      await round();
      assert.equal(await state(), 'undelivered');
    });

    it('a hundred failed deliveries are a refund after an hour, whatever is left of the day', async () => {
      world.terms = { ...world.terms, tokenDigest: 'a'.repeat(64) };
      for (let attempt = 0; attempt < 99; attempt += 1) await undelivered();
      later(3_600_000);
      await round();
      assert.equal(await state(), 'undelivered', 'ninety-nine');
      await undelivered();
      later(60_000);
      await round();
      assert.equal(await state(), 'refundDue');
    });

    it('within an hour they are no refund: one outage may cause them all', async () => {
      for (let attempt = 0; attempt < 100; attempt += 1) await undelivered();
      later(60_000);
      await round();
      assert.equal(await state(), 'undelivered');
    });
  });

  it('a record that the store loses between two looks does not come back as a reservation that waits for a day', async () => {
    const { record: paid } = await pay();
    world.terms = freshTerms();
    const lost = { ...paid, ...world.terms, state: 'undelivered', tries: 6 } as const;
    await bench.open(world.broken({ due: async () => [lost] })).round();
    assert.ok(((await record())?.dueAt ?? 0) <= world.clock + LEASE_MS);
    later(LEASE_MS);
    await round();
    assert.equal(await record(), undefined);
  });
});
