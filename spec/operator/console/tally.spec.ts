import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CommerceEvent, EventDraft } from '../../../src/events/event.ts';
import { createTally, rangeAt } from '../../../src/operator/console/history.js';
import { inDigits, plus, ZERO } from '../../../src/operator/console/receipts.js';
import type { Receipt, ReceiptPayment } from '../../../src/receipts/receipt.ts';
import { event, oldReceipt } from './sample-calls.ts';

const HOUR_MS = 3_600_000;
const NOW = Date.parse('2026-03-04T14:05:00.000Z');
const RANGE = rangeAt('day', NOW);
/** The bucket of now. */
const LAST = RANGE.buckets - 1;

/** A receipt of a payment that was settled so many hours before now. */
function sold(number: number, hoursAgo: number, payment: Partial<ReceiptPayment> = {}, change: Partial<Receipt> = {}) {
  const receipt = oldReceipt(number, { delivered: true, ...change });
  const settledAt = new Date(NOW - hoursAgo * HOUR_MS).toISOString();
  return { ...receipt, payment: { ...(receipt.payment ?? assert.fail('a payment')), settledAt, ...payment } };
}

/** A receipt of a call without a payment. */
function free(number: number, hoursAgo: number, durationMs = 10): Receipt {
  const { payment: _none, ...receipt } = oldReceipt(number, { delivered: true, durationMs });
  return { ...receipt, at: new Date(NOW - hoursAgo * HOUR_MS).toISOString() };
}

/** What is not zero, by bucket. */
function counted(counts: readonly number[]): Readonly<Record<number, number>> {
  return Object.fromEntries(counts.map((count, bucket) => [bucket, count] as const).filter(([, count]) => count > 0));
}

describe('receipts by bucket', () => {
  const tally = (receipts: readonly Receipt[]) => {
    const made = createTally(RANGE, NOW);
    // Page by page, as they are read.
    for (const receipt of receipts) made.addReceipts([receipt]);
    return made;
  };

  it('stand in the bucket of the settlement; free calls in that of the delivery', () => {
    const { deliveries } = tally([
      sold(1, 0),
      sold(2, 1, {}, { at: new Date(NOW).toISOString() }),
      sold(3, 23),
      sold(4, 24),
      free(5, 0),
      free(6, 30),
    ]);
    assert.deepEqual(
      [counted(deliveries.paid), counted(deliveries.free)],
      [{ 0: 1, [LAST - 1]: 1, [LAST]: 1 }, { [LAST]: 1 }],
    );
  });

  it('make an exact revenue by currency and network, delivered and undelivered apart', () => {
    const { income, deliveries } = tally([
      sold(1, 0, { amount: '0.1' }),
      sold(2, 0, { amount: '0.2' }),
      sold(3, 0, { amount: '9007199254740993.000000000000000001' }),
      sold(4, 0, { amount: '5', network: 'eip155:2' }),
      sold(5, 0, { amount: '7', currency: 'USDC' }),
      sold(6, 0, { amount: '0.4' }, { delivered: false }),
    ]);
    assert.deepEqual(
      income().map(({ currency, network, delivered, open }) =>
        [currency, network, ...[delivered, open].map((sums) => inDigits(sums.reduce(plus, ZERO), 0))].join(' '),
      ),
      [
        'TUSD eip155:31337 9\u202f007\u202f199\u202f254\u202f740\u202f993.300000000000000001 0.4',
        'TUSD eip155:2 5 0',
        'USDC eip155:31337 7 0',
      ],
    );
    assert.deepEqual([counted(deliveries.paid), counted(deliveries.lost)], [{ [LAST]: 5 }, { [LAST]: 1 }]);
  });

  it('leave out calls that may still run, and name apart what is in no sum', () => {
    const { income, deliveries, leftOut } = tally([
      sold(1, 0.01, {}, { delivered: false, backendStatus: 0 }),
      sold(2, 0, { status: 'unknown' }, { delivered: false }),
      sold(3, 0, { amount: 'much' }),
    ]);
    assert.deepEqual([counted(deliveries.paid), counted(deliveries.lost)], [{ [LAST]: 1 }, {}]);
    assert.deepEqual(leftOut, { unreadable: 1, undecided: 1 });
    assert.equal(inDigits(income()[0]?.delivered.reduce(plus, ZERO) ?? ZERO, 0), '0');
  });

  it('give the durations of what was delivered', () => {
    const { durations } = tally([free(1, 0, 30), free(2, 0, 10), sold(3, 0, {}, { delivered: false, durationMs: 99 })]);
    assert.deepEqual(durations[LAST], [30, 10]);
  });
});

describe('events by bucket', () => {
  let position = 0;
  const entry = (facts: EventDraft): CommerceEvent => {
    position += 1;
    return { ...facts, id: `evt_1800000000000-${position}` };
  };
  /** One call: its request, and what came after. */
  const call = (
    number: number,
    hoursAgo: number,
    ...after: readonly EventDraft['type'][]
  ): readonly CommerceEvent[] => {
    const facts = {
      callId: `call_${number}`,
      requestId: 'chosen',
      at: new Date(NOW - hoursAgo * HOUR_MS).toISOString(),
    };
    return [event('resource.requested', facts), ...after.map((type) => event(type, facts))].map(entry);
  };
  /** Reads newest first, in pages of two. */
  const ends = (events: readonly CommerceEvent[]) => {
    const tally = createTally(RANGE, NOW);
    const newest = events.toReversed();
    for (let at = 0; at < newest.length; at += 2) tally.addEvents(newest.slice(at, at + 2));
    return Object.fromEntries(Object.entries(tally.ends).map(([end, counts]) => [end, counted(counts)]));
  };

  it('count each call that left no receipt once, where it was requested', () => {
    assert.deepEqual(
      ends([
        ...call(1, 24, 'payment.required'),
        ...call(2, 23, 'payment.required'),
        ...call(3, 1, 'payment.rejected', 'payment.required'),
        ...call(4, 1, 'backend.failed'),
        ...call(5, 0),
        ...call(6, 0, 'payment.verified', 'payment.settled', 'backend.called', 'resource.delivered'),
        ...call(7, 0, 'payment.settled', 'backend.failed'),
        ...call(8, 0, 'backend.called', 'resource.delivered'),
      ]),
      { asked: { 0: 1 }, refused: { [LAST - 1]: 1 }, failed: { [LAST - 1]: 1 }, requested: { [LAST]: 1 } },
    );
  });

  it('of calls that ran at once are told apart', () => {
    const [one, other] = [call(1, 0, 'payment.required'), call(2, 0, 'backend.failed')];
    const mixed = [one[0], other[0], one[1], other[1]].map((entry) => entry ?? assert.fail('an event'));
    assert.deepEqual(ends(mixed), { asked: { [LAST]: 1 }, failed: { [LAST]: 1 }, refused: {}, requested: {} });
  });

  it('of a call whose request is not kept count nothing', () => {
    assert.deepEqual(ends(call(1, 0, 'payment.required').slice(1)), {
      asked: {},
      failed: {},
      refused: {},
      requested: {},
    });
  });
});
