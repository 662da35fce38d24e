import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { chartLines, chartsOf, known, percentile } from '../../../src/operator/console/charts.js';
import { csvLine, rangeAt, receiptHead, receiptRow, unread } from '../../../src/operator/console/history.js';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import { flat, parseCsv, recordsOf } from './parse-csv.ts';
import { oldReceipt } from './sample-calls.ts';

const HOUR_MS = 3_600_000;
const NOW = Date.parse('2026-03-04T14:05:00.000Z');
const RANGE = rangeAt('day', NOW);

describe('percentiles', () => {
  for (const { of, share, is } of [
    { of: [], share: 0.5, is: undefined },
    { of: [7], share: 0.5, is: 7 },
    { of: [7], share: 0.99, is: 7 },
    { of: [1, 2], share: 0.5, is: 1 },
    { of: [1, 2, 3], share: 0.5, is: 2 },
    { of: Array.from({ length: 100 }, (_, at) => at + 1), share: 0.95, is: 95 },
    { of: Array.from({ length: 100 }, (_, at) => at + 1), share: 0.99, is: 99 },
    { of: Array.from({ length: 101 }, (_, at) => at + 1), share: 0.99, is: 100 },
  ])
    it(`${share} of ${of.length} durations is ${is}`, () => assert.equal(percentile(of, share), is));

  it('are the least duration that so many calls did not exceed', () => {
    const durations = fc.array(fc.nat(), { minLength: 1 }).map((numbers) => numbers.toSorted((a, b) => a - b));
    fc.assert(
      fc.property(durations, fc.constantFrom(0.5, 0.95, 0.99), (sorted, share) => {
        const found = percentile(sorted, share) ?? assert.fail('one');
        const within = (limit: number) => sorted.filter((ms) => ms <= limit).length / sorted.length;
        assert.ok(sorted.includes(found) && within(found) >= share);
        for (const lower of sorted.filter((ms) => ms < found)) assert.ok(within(lower) < share);
      }),
    );
  });
});

describe('what is known of a bucket', () => {
  const reach = (hoursAgo: number) => ({ entries: 1, since: NOW - hoursAgo * HOUR_MS, end: 'kept' }) as const;
  for (const { what, hoursAgo, bucket, is } of [
    { what: 'a bucket after the reach', hoursAgo: 5, bucket: 20, is: 'whole' },
    { what: 'the bucket of now', hoursAgo: 5, bucket: 23, is: 'part' },
    { what: 'the bucket in which the reach begins', hoursAgo: 5, bucket: 18, is: 'part' },
    { what: 'a bucket before the reach', hoursAgo: 5, bucket: 17, is: 'none' },
    { what: 'the first bucket of a range that is whole', hoursAgo: 24, bucket: 0, is: 'whole' },
  ] as const)
    it(`${what} is known: ${is}`, () => assert.equal(known(RANGE, reach(hoursAgo), NOW, bucket), is));

  it('what is owed is shown from before the reach too, in the sum and where it stands', () => {
    const history = unread(RANGE, NOW);
    history.tally.addReceipts([oldReceipt(1, {}, Date.now() - NOW + 10 * HOUR_MS)]);
    const [, , lost] = chartsOf({ ...history, receipts: reach(2) })[1]?.series ?? [];
    assert.deepEqual([lost?.values[13]?.units, lost?.values[12], lost?.total?.units], [1n, undefined, 1n]);
  });

  it('what is not known has no number, and what is known and did not happen is 0', () => {
    const history = unread(RANGE, NOW);
    history.tally.addReceipts([oldReceipt(1, { delivered: true }, Date.now() - NOW + HOUR_MS)]);
    const charts = chartsOf({ ...history, receipts: reach(2) });
    const [revenue, deliveries, , latency] = charts.map(({ series }) => series[0]?.values.map((value) => value?.units));
    assert.deepEqual(
      [revenue?.slice(-4), deliveries?.slice(-4)],
      [
        [undefined, 0n, 2n, 0n],
        [undefined, 0n, 1n, 0n],
      ],
    );
    assert.deepEqual(latency?.slice(-4), [undefined, undefined, 812n, undefined]);
    assert.ok(charts[2]?.series.every(({ values }) => values.every((value) => value === undefined)));
  });
});

/** A receipt with every member that there is. */
const FULL: Required<Receipt> = {
  ...(oldReceipt(1, { delivered: true, deliveredAt: '2026-03-04T14:05:00.000Z' }) as Required<Receipt>),
  authorization: {
    method: 'ap2',
    reference: 'ref',
    metadata: { mandateIssuer: 'https://issuer.example', checkoutIssuer: 'a, "b"', checkoutId: 'checkout' },
  },
  metadata: {
    backendErrorCode: 'TIMEOUT',
    resumedFrom: 'req',
    operation: 'create',
    channel: 'origin',
    answerKept: true,
    refundDue: true,
    callId: 'call',
    deliveryUncertain: true,
    sentBytes: 1,
    ofBytes: 2,
    backendPath: '/reports/{city}',
    recovered: 'chain',
  } satisfies Required<NonNullable<Receipt['metadata']>>,
};

describe('CSV', () => {
  for (const { fields, line } of [
    { fields: ['a', 'b'], line: 'a,b\r\n' },
    { fields: ['a,b', 'say "hi"', 'two\r\nlines', ''], line: '"a,b","say ""hi""","two\r\nlines",\r\n' },
    { fields: [200, 0, true, undefined], line: '200,0,true,\r\n' },
    { fields: ['=1+1', '+1', '-1', '@a', '\tx', '\rx'], line: `'=1+1,'+1,'-1,'@a,'\tx,"'\rx"\r\n` },
    { fields: ['=HYPERLINK("http://thief.example","a")'], line: `"'=HYPERLINK(""http://thief.example"",""a"")"\r\n` },
    { fields: ['\uff1d1', '\uff0b1', '\uff0d1', '\uff201'], line: `'\uff1d1,'\uff0b1,'\uff0d1,'\uff201\r\n` },
    { fields: ['a=1', '0.02', 'req-1', "'"], line: "a=1,0.02,req-1,'\r\n" },
  ])
    it(`of ${JSON.stringify(fields)} is ${JSON.stringify(line)}`, () => assert.equal(csvLine(fields), line));

  it('of any texts reads back as these texts, but for the apostrophe before a formula', () => {
    const texts = fc.array(fc.array(fc.string({ unit: 'binary' }), { minLength: 2, maxLength: 2 }), { minLength: 1 });
    fc.assert(
      fc.property(texts, (rows) => {
        const back = parseCsv(rows.map(csvLine).join(''));
        for (const [at, row] of rows.entries())
          for (const [column, text] of row.entries()) {
            const read = back[at]?.[column] ?? assert.fail('a field');
            assert.ok(read === text || (read === `'${text}` && /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text)));
            assert.doesNotMatch(read, /^[=+\-@\t\r\n]/);
          }
      }),
    );
  });

  it('of receipts has a column for every member, and each amount, hash and time as it is', () => {
    const [read] = recordsOf(receiptHead() + receiptRow(FULL));
    assert.deepEqual({ ...read }, flat(FULL));
  });

  it('of a receipt without a payment leaves its columns empty', () => {
    const { payment: _none, ...free } = oldReceipt(2);
    const [read = {}] = recordsOf(receiptHead() + receiptRow(free));
    assert.deepEqual(Object.fromEntries(Object.entries(read).filter(([, value]) => value !== '')), flat(free));
  });
});

describe('CSV of the charts', () => {
  const now = Date.parse('2026-03-04T14:05:00.000Z');
  const hour = 3_600_000;
  const history = unread(rangeAt('day', now), now);
  const sold = (number: number, hoursAgo: number, amount: string) => {
    const receipt = oldReceipt(number, { delivered: true }, Date.now() - now + hoursAgo * hour);
    return { ...receipt, payment: { ...(receipt.payment ?? assert.fail('a payment')), amount } };
  };
  history.tally.addReceipts([sold(1, 1, '1234567.000000000000000001'), sold(2, 1, '0.1'), sold(3, 0, '7')]);
  const read = { ...history, receipts: { entries: 3, since: now - 2 * hour, end: 'kept' } as const };
  const records = recordsOf(chartLines(read, chartsOf(read)));

  it('has a line for each bucket, with its ends in UTC', () => {
    assert.equal(records.length, 24);
    assert.deepEqual(
      [records[0]?.['from'], records[0]?.['to']],
      ['2026-03-03T15:00:00.000Z', '2026-03-03T16:00:00.000Z'],
    );
  });

  it('has exact sums, and nothing where nothing is known', () => {
    const column = 'Revenue Delivered TUSD eip155:31337';
    assert.deepEqual(
      records.slice(-4).map((record) => [record['receipts'], record[column], record['Deliveries Paid']]),
      [
        ['none', '', ''],
        ['part', '0', '0'],
        ['whole', '1234567.100000000000000001', '2'],
        ['part', '7', '1'],
      ],
    );
    assert.ok(
      records.every((record) => record['events'] === 'none' && record['Calls without a delivery Failed'] === ''),
    );
    assert.equal(records.at(-2)?.['Latency of deliveries p95 ms'], '812');
  });
});
