/**
 * The contents of the charts of a range, and the same as CSV (RFC 4180).
 *
 * @typedef {import('./history.js').History} History
 * @typedef {import('./history.js').Range} Range
 * @typedef {import('./history.js').Reach} Reach
 * @typedef {import('./receipts.js').Decimal} Decimal
 * @typedef {'whole' | 'part' | 'none'} Known How much is known of what happened in a bucket.
 *
 * @typedef {object} Series
 * @property {string} name
 * @property {string} tone
 * @property {readonly (Decimal | undefined)[]} values By bucket; undefined where there is none.
 * @property {Decimal | undefined} total Of the whole range.
 *
 * @typedef {object} Chart
 * @property {string} id
 * @property {string} title
 * @property {'bars' | 'lines'} kind Bars stand on one another.
 * @property {string} unit Of the values; empty for counts.
 * @property {string} more An addition to the unit: a network.
 * @property {Reach} reach Of the list that it is made from.
 * @property {readonly Series[]} series
 * @property {(value: Decimal) => string} text
 */

import { OUTCOMES } from './calls.js';
import { duration } from './format.js';
import { beginOf, csvLine, WITHOUT_RECEIPT } from './history.js';
import { commonDecimals, digits, inDigits, plus, whole, ZERO } from './receipts.js';

/** Tones of the calls that left no receipt. */
const TONES = { failed: 'bad', refused: 'warn', asked: 'soft', requested: 'faint' };
const PERCENTILES = [
  { name: 'p50', share: 0.5, tone: 'accent' },
  { name: 'p95', share: 0.95, tone: 'soft' },
  { name: 'p99', share: 0.99, tone: 'faint' },
];

/**
 * @param {Range} range
 * @param {Reach} reach
 * @param {number} at When it was read, milliseconds.
 * @param {number} bucket
 * @returns {Known}
 */
export function known(range, { since }, at, bucket) {
  const begin = beginOf(range, bucket);
  const end = beginOf(range, bucket + 1);
  if (end <= since || begin > at) return 'none';
  return begin >= since && end <= at ? 'whole' : 'part';
}

/**
 * The charts of a history: revenue in each currency on each network, deliveries, calls without a
 * delivery, and how long deliveries took.
 *
 * @param {History} history
 * @returns {readonly Chart[]}
 */
export function chartsOf({ range, at, tally, receipts, events }) {
  /**
   * Sums of what was read. A bucket before `since` may have one too: receipts of payments that are
   * not delivered are never dropped.
   *
   * @param {Reach} reach
   * @param {{ readonly name: string, readonly tone: string }} named
   * @param {readonly Decimal[]} values
   */
  const sums = (reach, named, values) => ({
    ...named,
    values: values.map((value, bucket) =>
      value.units === 0n && known(range, reach, at, bucket) === 'none' ? undefined : value,
    ),
    total: values.reduce(plus, ZERO),
  });
  const income = tally.income();
  const sold = income.length > 0 ? income : [{ currency: '', network: '', delivered: [], open: [] }];
  const byBucket = tally.durations.map(ascending);
  const all = ascending(tally.durations.flat());
  return [
    ...sold.map(({ currency, network, delivered, open }) => {
      const decimals = commonDecimals([...delivered, ...open]);
      return {
        id: JSON.stringify(['revenue', currency, network]),
        title: 'Revenue',
        kind: /** @type {const} */ ('bars'),
        unit: currency,
        more: network,
        reach: receipts,
        series: [
          sums(receipts, { name: 'Delivered', tone: 'accent' }, delivered),
          sums(receipts, { name: 'Not delivered', tone: 'bad' }, open),
        ],
        text: (/** @type {Decimal} */ value) => inDigits(value, decimals),
      };
    }),
    {
      id: 'deliveries',
      title: 'Deliveries',
      kind: 'bars',
      unit: '',
      more: '',
      reach: receipts,
      series: [
        sums(receipts, { name: 'Paid', tone: 'accent' }, tally.deliveries.paid.map(whole)),
        sums(receipts, { name: 'Free', tone: 'faint' }, tally.deliveries.free.map(whole)),
        sums(receipts, { name: 'Paid, not delivered', tone: 'bad' }, tally.deliveries.lost.map(whole)),
      ],
      text: (value) => inDigits(value, 0),
    },
    {
      id: 'ends',
      title: 'Calls without a delivery',
      kind: 'bars',
      unit: '',
      more: '',
      reach: events,
      series: WITHOUT_RECEIPT.map((end) =>
        sums(events, { name: OUTCOMES[end].label, tone: TONES[end] }, tally.ends[end].map(whole)),
      ),
      text: (value) => inDigits(value, 0),
    },
    {
      id: 'latency',
      title: 'Latency of deliveries',
      kind: 'lines',
      unit: 'ms',
      more: '',
      reach: receipts,
      series: PERCENTILES.map(({ name, tone, share }) => ({
        name,
        tone,
        values: byBucket.map((sorted) => measured(percentile(sorted, share))),
        total: measured(percentile(all, share)),
      })),
      text: (value) => duration(Number(value.units)),
    },
  ];
}

/**
 * The least duration that this share of the calls did not exceed (nearest rank); undefined without
 * calls.
 *
 * @param {readonly number[]} sorted Milliseconds, ascending.
 * @param {number} share Above 0, at most 1.
 */
export function percentile(sorted, share) {
  return sorted[Math.ceil(share * sorted.length) - 1];
}

/** @param {readonly number[]} numbers */
function ascending(numbers) {
  return numbers.toSorted((one, other) => one - other);
}

/** @param {number | undefined} ms */
function measured(ms) {
  return ms === undefined ? undefined : whole(Math.max(0, Math.round(ms)));
}

/**
 * The charts: a line for each bucket, a column for each series. An unknown number is empty; the
 * columns `receipts` and `events` tell how much of each list a line covers.
 *
 * @param {History} history
 * @param {readonly Chart[]} charts
 */
export function chartLines({ range, at, receipts, events }, charts) {
  const series = charts.flatMap(({ title, unit, series, more }) =>
    series.map(({ name, values }) => ({ head: [title, name, unit, more].filter(Boolean).join(' '), values })),
  );
  const head = ['from', 'to', 'receipts', 'events', ...series.map(({ head }) => head)];
  const lines = Array.from({ length: range.buckets }, (_, bucket) => [
    new Date(beginOf(range, bucket)).toISOString(),
    new Date(beginOf(range, bucket + 1)).toISOString(),
    ...[receipts, events].map((reach) => known(range, reach, at, bucket)),
    ...series.map(({ values }) => values[bucket] && digits(values[bucket])),
  ]);
  return [head, ...lines].map(csvLine).join('');
}
