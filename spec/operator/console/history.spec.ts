import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { CommerceEvent, EventDraft } from '../../../src/events/event.ts';
import { openGateway } from '../../../src/operator/console/gateway.js';
import {
  bucketOf,
  createTally,
  type History,
  labels,
  type Progress,
  RANGE_KEYS,
  RANGES,
  type RangeKey,
  rangeAt,
  readHistory,
  receiptHead,
  told,
  utc,
} from '../../../src/operator/console/history.js';
import { inDigits, plus, ZERO } from '../../../src/operator/console/receipts.js';
import type { Receipt, ReceiptPayment } from '../../../src/receipts/receipt.ts';
import { OPERATOR_TOKEN } from '../../support/gateway.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { recordsOf } from './parse-csv.ts';
import { event, oldReceipt } from './sample-calls.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Delivered receipts that the store keeps. */
const KEPT = 1_200;

/** Reads a range of a gateway; also what was asked of it. */
async function readOf(
  { gateway }: Testbed,
  key: RangeKey,
  options: Progress & { readonly pages?: number; readonly ask?: typeof fetch } = {},
): Promise<History & { readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const { ask = fetch, ...rest } = options;
  const noted: typeof fetch = (url, init) => {
    asked.push(String(url).slice(gateway.url.length));
    return ask(url, init);
  };
  const opened = openGateway(OPERATOR_TOKEN, { base: new URL(`${gateway.url}/`), ask: noted });
  const now = Date.now();
  return { ...(await readHistory(opened, rangeAt(key, now), { ...rest, now })), asked };
}

function delivered(number: number, agoMs: number, change: Partial<Receipt> = {}): Receipt {
  return oldReceipt(number, { delivered: true, ...change }, agoMs);
}

const total = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);

describe('the history of a shop', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: { storage: { receiptsMaxLength: KEPT, eventsMaxLength: 2_000 } } });
    const { receipts, feed } = testbed.gateway.store;
    // One each half hour for 20 days, and an owed one that is older than all.
    await receipts.write(Array.from({ length: 960 }, (_, at) => delivered(at + 1, (at + 0.5) * 0.5 * HOUR_MS)));
    await receipts.write([oldReceipt(5_000, { metadata: { refundDue: true } }, 60 * DAY_MS)]);
    const calls = Array.from({ length: 700 }, (_, at) => ({ callId: `call_${at}`, requestId: `req-${at}` }));
    await feed.append(calls.flatMap((call) => [event('resource.requested', call), event('payment.required', call)]));
  });
  after(() => testbed.close());

  it('of a day that is kept is whole, and is read no further than it reaches', async () => {
    const { tally, receipts, asked, range } = await readOf(testbed, 'day');
    assert.equal(receipts.end, 'from');
    const within = Math.floor((Date.now() - range.from) / (0.5 * HOUR_MS) + 0.5);
    assert.equal(total(tally.deliveries.paid), within);
    assert.equal(asked.filter((path) => path.startsWith('/api/receipts')).length, 1);
  });

  it('of a month shows how far back receipts of deliveries are kept, whatever older ones are owed', async () => {
    const history = await readOf(testbed, 'month');
    const { tally, receipts, events } = history;
    assert.equal(total(tally.deliveries.paid), 960);
    const oldest = Date.now() - 959.5 * 0.5 * HOUR_MS;
    assert.equal(receipts.end, 'kept');
    assert.ok(Math.abs(receipts.since - oldest) < 60_000, new Date(receipts.since).toISOString());
    assert.deepEqual([total(tally.ends.asked), events.entries], [700, 1_400]);
    const [first = '', second = ''] = told(history);
    assert.match(first, /^Receipts of deliveries reach back to \d+ \w+ \d\d:\d\d; the gateway keeps no older ones\.$/);
    assert.match(second, /^Events reach back to .*; before that, calls without a delivery are not known\.$/);
  });

  it('of a week is whole when the gateway still has older deliveries', async () => {
    const history = await readOf(testbed, 'week');
    assert.deepEqual([history.receipts.end, told(history).length], ['from', 1]);
  });

  it('of a week that has a gap before an older owed payment shows the gap', async () => {
    // The list goes on below the range, but with nothing that was delivered.
    const ask: typeof fetch = async (url, init) => {
      const response = await fetch(url, init);
      const { pathname } = new URL(String(url));
      if (pathname !== '/api/receipts') return response;
      const { receipts, ...rest } = (await response.json()) as { receipts: Receipt[] };
      const left = receipts.filter((receipt) => !receipt.delivered || Date.parse(receipt.at) > Date.now() - 3 * DAY_MS);
      return Response.json({ receipts: left, ...rest });
    };
    const { receipts, asked } = await readOf(testbed, 'week', { ask });
    assert.equal(receipts.end, 'kept');
    assert.ok(Math.abs(receipts.since - (Date.now() - 3 * DAY_MS)) < HOUR_MS);
    assert.match(asked.at(-1) ?? '', /limit=1&delivered=true&cursor=receipt_/);
  });

  it('gives the receipts of the range as CSV, each once, newest first', async () => {
    const { rows, range } = await readOf(testbed, 'month');
    const ids = recordsOf(receiptHead() + (await new Blob([...rows]).text())).map(({ id = '' }) => id);
    assert.equal(ids.length, 960);
    assert.deepEqual(ids, [...new Set(ids)].sort().reverse());
    assert.ok(range.from > Date.now() - 31 * DAY_MS, 'the owed one of 60 days ago is outside');
  });

  it('that is longer than its bound of pages shows where reading ended', async () => {
    const history = await readOf(testbed, 'month', { pages: 1 });
    assert.deepEqual([history.receipts.entries, history.receipts.end], [500, 'bound']);
    assert.equal(total(history.tally.deliveries.paid), 500);
    assert.match(
      told(history)[0] ?? '',
      /^Receipts of deliveries were read back to .*, 500 of them; older ones are left out\.$/,
    );
  });

  it('that is stopped keeps what was read, and shows how far', async () => {
    let pages = 0;
    const history = await readOf(testbed, 'month', { going: () => pages < 1, onPage: () => (pages += 1) });
    assert.deepEqual([history.receipts.entries, history.receipts.end, history.events.end], [500, 'stopped', 'stopped']);
    const [first = '', second = ''] = told(history);
    assert.match(first, /^Receipts of deliveries were read back to .*, because you stopped\.$/);
    assert.equal(second, 'Events: none read, because you stopped.');
  });

  it('that cannot be read to its end shows why', async () => {
    const ask: typeof fetch = (url, init) =>
      String(url).includes('cursor=')
        ? Promise.resolve(Response.json({ code: 'STORAGE_ERROR' }, { status: 503 }))
        : fetch(url, init);
    const history = await readOf(testbed, 'month', { ask });
    assert.equal(history.receipts.entries, 500);
    assert.match(told(history)[0] ?? '', /^Receipts of deliveries were read back to .*\. The store is away/);
  });

  it('tells after each page how much was read, and how far back', async () => {
    const told: { readonly receipts: number; readonly events: number; readonly back: number }[] = [];
    await readOf(testbed, 'month', { onPage: (read) => void told.push(read) });
    assert.deepEqual(
      told.map(({ receipts, events }) => [receipts, events]),
      [
        [500, 0],
        [960, 0],
        [960, 500],
        [960, 1_000],
        [960, 1_400],
      ],
    );
    assert.ok((told[0]?.back ?? 0) > (told[1]?.back ?? 0));
  });

  it('of which the store has dropped the oldest deliveries reaches back to the oldest that is left', async () => {
    // Newer ones push out the oldest, as many in a write as it brings.
    for (let batch = 0; batch < 4; batch += 1)
      await testbed.gateway.store.receipts.write(
        Array.from({ length: 100 }, (_, at) => delivered(10_000 + 100 * batch + at, at * 1_000)),
      );
    const { receipts, tally } = await readOf(testbed, 'month');
    assert.equal(total(tally.deliveries.paid), KEPT);
    assert.ok(receipts.since > Date.now() - 18 * DAY_MS, new Date(receipts.since).toISOString());
    assert.equal(receipts.end, 'kept');
  });
});

describe('a payment that was signed before the range and settled in it', () => {
  it('is counted, on whatever page it comes', async (t) => {
    const testbed = await openTestbed();
    t.after(() => testbed.close());
    const { from } = rangeAt('hour', Date.now());
    const signed = (number: number, at: number, change: Partial<Receipt> = {}) =>
      delivered(number, Date.now() - at, change);
    const late = signed(1, from - 30 * 60_000, { resourceId: 'late' });
    const payment = { ...(late.payment ?? assert.fail('a payment')), settledAt: new Date().toISOString() };
    // A page of 500 that ends before the range.
    const newer = Array.from({ length: 499 }, (_, at) => signed(at + 3, Date.now() - at * 1_000));
    await testbed.gateway.store.receipts.write([{ ...late, payment }, signed(2, from - 60_000), ...newer]);
    const { tally, rows } = await readOf(testbed, 'hour');
    assert.equal(total(tally.deliveries.paid), 500);
    assert.match(await new Blob([...rows]).text(), /,late,/);
  });
});

describe('the history of a shop that has sold nothing', () => {
  it('says that there is nothing, for certain only since now', async (t) => {
    const testbed = await openTestbed();
    t.after(() => testbed.close());
    const history = await readOf(testbed, 'day');
    assert.deepEqual(told(history), [
      'Receipts of deliveries: the gateway keeps none.',
      'Events: the gateway keeps none.',
    ]);
    assert.ok(history.receipts.since >= history.at);
  });
});

const iso = (ms: number) => new Date(ms).toISOString();
const MOMENT = Date.parse('2026-03-04T14:05:06.789Z');

describe('the ranges of the charts', () => {
  for (const { key, from, to } of [
    { key: 'hour', from: '2026-03-04T13:06:00.000Z', to: '2026-03-04T14:06:00.000Z' },
    { key: 'day', from: '2026-03-03T15:00:00.000Z', to: '2026-03-04T15:00:00.000Z' },
    { key: 'week', from: '2026-02-25T18:00:00.000Z', to: '2026-03-04T18:00:00.000Z' },
    { key: 'month', from: '2026-02-03T00:00:00.000Z', to: '2026-03-05T00:00:00.000Z' },
  ] as const)
    it(`${RANGES[key].name} end with the bucket of now and begin at a round time of UTC`, () => {
      const range = rangeAt(key, MOMENT);
      assert.deepEqual([iso(range.from), iso(range.to)], [from, to]);
      assert.equal(range.from + range.buckets * range.stepMs, range.to);
      assert.equal(bucketOf(range, MOMENT), range.buckets - 1);
    });

  it('a bucket holds its first moment and not its end', () => {
    const range = rangeAt('day', MOMENT);
    const hour = 3_600_000;
    assert.deepEqual(
      [range.from - 1, range.from, range.from + hour - 1, range.from + hour, range.to - 1, range.to, Number.NaN].map(
        (at) => bucketOf(range, at),
      ),
      [undefined, 0, 0, 1, 23, undefined, undefined],
    );
  });

  it('a moment at which a bucket begins is in the range that begins with it', () => {
    const range = rangeAt('day', Date.parse('2026-03-04T15:00:00.000Z'));
    assert.equal(iso(range.to), '2026-03-04T16:00:00.000Z');
  });

  it('are labelled by the hour, and by the day where one begins', () => {
    assert.deepEqual(
      labels(rangeAt('day', MOMENT)).map(({ text }) => text),
      ['18:00', '4 Mar', '06:00', '12:00'],
    );
    for (const key of RANGE_KEYS) {
      const count = labels(rangeAt(key, MOMENT)).length;
      assert.ok(count >= 3 && count <= 6, `${count} labels of ${key}`);
    }
  });

  it('a moment is told in UTC wherever the reader is', () => {
    assert.deepEqual([utc(MOMENT), utc(MOMENT, RANGES.month.stepMs)], ['4 Mar 14:05', '4 Mar']);
  });
});

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
