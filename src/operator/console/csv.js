/** Writes CSV (RFC 4180): receipts as the gateway keeps them, and the numbers of the charts. */

import { known } from './charts.js';
import { digits } from './money.js';
import { beginOf } from './ranges.js';

/**
 * @typedef {import('../../receipts/receipt.ts').Receipt} Receipt
 * @typedef {import('./charts.js').Chart} Chart
 * @typedef {import('./history.js').History} History
 * @typedef {string | number | boolean | undefined} Field
 */

export const CSV_TYPE = 'text/csv;charset=utf-8';

/** Columns of a receipt, named after its members (contract 6.1). */
const RECEIPT_COLUMNS = [
  ...['id', 'requestId', 'resourceId', 'protocol', 'at', 'delivered', 'deliveredAt', 'backendStatus', 'durationMs'],
  ...['payment.status', 'payment.provider', 'payment.amount', 'payment.currency', 'payment.network', 'payment.asset'],
  ...['payment.payer', 'payment.payee', 'payment.externalReference', 'payment.replayKey', 'payment.settledAt'],
  ...['authorization.method', 'authorization.reference', 'authorization.metadata.mandateIssuer'],
  ...['authorization.metadata.checkoutIssuer', 'authorization.metadata.checkoutId'],
  ...['metadata.backendErrorCode', 'metadata.resumedFrom', 'metadata.operation', 'metadata.channel', 'metadata.callId'],
  ...['metadata.answerKept', 'metadata.refundDue', 'metadata.deliveryUncertain'],
  ...['metadata.recovered', 'metadata.sentBytes', 'metadata.ofBytes', 'metadata.backendPath'],
];
const PATHS = RECEIPT_COLUMNS.map((column) => column.split('.'));

/**
 * A spreadsheet takes a text that begins like this for a formula; some of them the forms of double
 * width too.
 */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/**
 * One line. A text that a spreadsheet would take for a formula gets an apostrophe before it.
 *
 * @param {readonly Field[]} fields
 */
export function csvLine(fields) {
  return `${fields.map(csvField).join(',')}\r\n`;
}

/** @param {Field} value */
function csvField(value = '') {
  if (typeof value !== 'string') return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The first line above receipts. */
export function receiptHead() {
  return csvLine(RECEIPT_COLUMNS);
}

/** @param {Receipt} receipt */
export function receiptRow(receipt) {
  return csvLine(PATHS.map((path) => /** @type {Field} */ (path.reduce(member, receipt))));
}

/**
 * @param {any} of
 * @param {string} name
 * @returns {unknown}
 */
function member(of, name) {
  return of?.[name];
}

/**
 * The charts: a line for each bucket, a column for each series. A number that is not known is
 * empty; `receipts` and `events` tell whether a line has all of them that there were.
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
