/**
 * A range back from now: its buckets, its reading page by page, its sums, and its receipts as CSV
 * (RFC 4180).
 *
 * @typedef {import('./calls.js').CommerceEvent} CommerceEvent
 * @typedef {import('./receipts.js').Decimal} Decimal
 * @typedef {import('./receipts.js').PaidReceipt} PaidReceipt
 * @typedef {import('./receipts.js').Receipt} Receipt
 * @typedef {import('./session.js').Gateway} Gateway
 *
 * @typedef {'from' | 'kept' | 'bound' | 'stopped' | Refusal} End Why reading ended: at the
 *   beginning of the range, with the oldest entry that is kept, at the bound of pages, by the
 *   operator, or without an answer.
 *
 * @typedef {object} Reach How far a list was read.
 * @property {number} entries Those of the range.
 * @property {number} since Nothing after this moment is missing, milliseconds.
 * @property {End} end
 *
 * @typedef {object} History
 * @property {Range} range
 * @property {number} at When reading began, milliseconds.
 * @property {Tally} tally
 * @property {Reach} receipts
 * @property {Reach} events
 * @property {readonly Blob[]} rows The receipts of the range as lines of CSV, newest first.
 *
 * @typedef {object} Progress
 * @property {() => boolean} [going] Asked before each page; false ends the reading.
 * @property {(read: Read) => void} [onPage] Told after each page.
 *
 * @typedef {object} Read
 * @property {number} receipts Of the range, so far.
 * @property {number} events
 * @property {number} back Time of the oldest entry of the list that is being read, milliseconds.
 */

import { callOf } from './calls.js';
import { counted } from './format.js';
import { Refusal } from './gateway.js';
import { decimal, isPaid, isRunning, plus, ZERO } from './receipts.js';

/** Entries of a page: the most that the gateway gives. */
const PAGE = 500;
/** Most pages of a list: 200,000 entries. */
export const MAX_PAGES = 400;
/**
 * Longest time from the moment in the id of a receipt to its settlement, milliseconds. The id has
 * the time when the buyer signed, and an offer may be paid for an hour.
 */
const SIGNED_BEFORE_MS = 3_600_000;

/**
 * Reads a history. Never rejects: after a refusal it has what was read before.
 *
 * @param {Gateway} gateway
 * @param {Range} range
 * @param {Progress & { readonly now: number, readonly pages?: number }} options `now` in
 *   milliseconds; `pages`: most of a list.
 * @returns {Promise<History>}
 */
export async function readHistory(gateway, range, { now, going = () => true, onPage = () => {}, pages = MAX_PAGES }) {
  const tally = createTally(range, now);
  /** @type {Blob[]} */
  const rows = [];
  let deliveredSince = now;
  /** @param {string} at ISO 8601. */
  const inRange = (at) => bucketOf(range, Date.parse(at)) !== undefined;
  /** @param {readonly Receipt[]} page */
  const takeReceipts = (page) => {
    const inside = page.filter((receipt) => inRange(soldAt(receipt)));
    tally.addReceipts(inside);
    if (inside.length > 0) rows.push(new Blob(inside.map(receiptRow)));
    const oldest = page.findLast(({ delivered }) => delivered);
    if (oldest !== undefined) deliveredSince = receiptTime(oldest.id);
    return inside.length;
  };
  /** @param {readonly CommerceEvent[]} page */
  const takeEvents = (page) => {
    tally.addEvents(page);
    return page.filter(({ at }) => inRange(at)).length;
  };
  const bounds = { now, going, pages };
  const receipts = await readBack((query) => gateway.receipts(query), {
    ...bounds,
    until: range.from - SIGNED_BEFORE_MS,
    timeOf: receiptTime,
    take: takeReceipts,
    onPage: (entries, back) => onPage({ receipts: entries, events: 0, back }),
  });
  const events = await readBack((query) => gateway.events(query), {
    ...bounds,
    until: range.from,
    timeOf: eventTime,
    take: takeEvents,
    onPage: (entries, back) => onPage({ receipts: receipts.entries, events: entries, back }),
  });
  return { range, at: now, tally, receipts: await ofDelivered(gateway, range, receipts, deliveredSince), events, rows };
}

/**
 * How far receipts of delivered calls reach. The store drops these only, the oldest first: they
 * cover the whole range if the store still has one from before it.
 *
 * @param {Gateway} gateway
 * @param {Range} range
 * @param {Reach} read
 * @param {number} oldest Of those that were read, milliseconds.
 * @returns {Promise<Reach>}
 */
async function ofDelivered(gateway, range, read, oldest) {
  if (read.end !== 'from' && read.end !== 'kept') return read;
  if (oldest < range.from) return { ...read, since: range.from, end: 'from' };
  const kept = { ...read, since: oldest, end: /** @type {const} */ ('kept') };
  if (read.end === 'kept') return kept;
  try {
    const { items } = await gateway.receipts({ limit: '1', delivered: 'true', cursor: receiptIdAt(range.from) });
    return items.length > 0 ? read : kept;
  } catch (thrown) {
    return { ...kept, end: refusalOf(thrown) };
  }
}

/**
 * The history of a range of which nothing was read yet.
 *
 * @param {Range} range
 * @param {number} at Milliseconds.
 * @returns {History}
 */
export function unread(range, at) {
  const none = { entries: 0, since: range.to, end: /** @type {const} */ ('stopped') };
  return { range, at, tally: createTally(range, at), receipts: none, events: none, rows: [] };
}

/**
 * Tells the missing parts of the range, and the payments in no sum.
 *
 * @param {History} history
 * @returns {readonly string[]} Sentences.
 */
export function told({ at, receipts, events, tally: { leftOut } }) {
  return [
    ...missing('Receipts of deliveries', receipts, at, 'the gateway keeps no older ones'),
    ...missing('Events', events, at, 'before that, calls without a delivery are not known'),
    ...apart(leftOut.unreadable, 'readable amount'),
    ...apart(leftOut.undecided, 'known outcome'),
  ];
}

/**
 * @param {string} what
 * @param {Reach} reach
 * @param {number} at When reading began, milliseconds.
 * @param {string} kept The words for a list without older entries.
 */
function missing(what, { entries, since, end }, at, kept) {
  const back = `${what} ${end === 'kept' ? 'reach' : 'were read'} back to ${utc(since)}`;
  if (end === 'from') return [];
  if (end === 'kept') return [since >= at ? `${what}: the gateway keeps none.` : `${back}; ${kept}.`];
  if (end === 'bound') return [`${back}, ${entries} of them; older ones are left out.`];
  const read = since >= at ? `${what}: none read` : back;
  return [end === 'stopped' ? `${read}, because you stopped.` : `${read}. ${end.message}`];
}

/**
 * @param {number} count
 * @param {string} what Of a payment.
 */
function apart(count, what) {
  return count === 0 ? [] : [`In no sum: ${counted(count, 'payment')} without a ${what}.`];
}

/**
 * @template {{ readonly id: string }} T
 * @param {(query: import('./gateway.js').Query) => Promise<import('./gateway.js').Page<T>>} read
 * @param {{
 *   readonly now: number,
 *   readonly until: number,
 *   readonly pages: number,
 *   readonly going: () => boolean,
 *   readonly timeOf: (id: string) => number,
 *   readonly take: (items: readonly T[]) => number,
 *   readonly onPage: (entries: number, back: number) => void,
 * }} options `take` tells how many are of the range.
 * @returns {Promise<Reach>}
 */
async function readBack(read, { now, until, pages, going, timeOf, take, onPage }) {
  let entries = 0;
  let since = now;
  /** @type {string | undefined} */
  let next;
  for (let page = 0; page < pages; page += 1) {
    if (!going()) return { entries, since, end: 'stopped' };
    try {
      const limit = String(PAGE);
      const answer = await read(next === undefined ? { limit } : { limit, cursor: next });
      entries += take(answer.items);
      next = answer.next;
      const oldest = answer.items.at(-1)?.id ?? next;
      if (oldest !== undefined) since = timeOf(oldest);
    } catch (thrown) {
      return { entries, since, end: refusalOf(thrown) };
    }
    onPage(entries, since);
    if (since < until) return { entries, since: until, end: 'from' };
    if (next === undefined) return { entries, since, end: 'kept' };
  }
  return { entries, since, end: 'bound' };
}

/**
 * Anything but a Refusal is a bug of the page: it is logged, and what was read is shown.
 *
 * @param {unknown} thrown
 */
function refusalOf(thrown) {
  if (thrown instanceof Refusal) return thrown;
  console.error(thrown);
  return new Refusal('strange');
}

/**
 * The time of a receipt id, milliseconds: `receipt_` and a UUID that begins with it.
 *
 * @param {string} id
 */
function receiptTime(id) {
  return Number.parseInt(id.slice(8, 16) + id.slice(17, 21), 16);
}

/**
 * The least receipt id of a moment.
 *
 * @param {number} ms
 */
function receiptIdAt(ms) {
  const time = ms.toString(16).padStart(12, '0');
  return `receipt_${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
}

/**
 * The time of a position of the feed, `evt_<ms>-<seq>`.
 *
 * @param {string} id
 */
function eventTime(id) {
  return Number(id.slice('evt_'.length).split('-')[0]);
}

/**
 * The ranges of time that the page shows, cut into buckets at round times of UTC, as receipts,
 * events and the chain have them: all operators of a shop see the same sums.
 *
 * @typedef {(typeof RANGE_KEYS)[number]} RangeKey
 *
 * @typedef {object} Range
 * @property {RangeKey} key
 * @property {number} from Milliseconds, the beginning of the first bucket.
 * @property {number} to Milliseconds, the end of the last bucket, which is not over yet.
 * @property {number} stepMs Length of a bucket.
 * @property {number} buckets
 */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

export const RANGE_KEYS = /** @type {const} */ (['hour', 'day', 'week', 'month']);

/** `labelMs`: between two labels of the axis of time. */
export const RANGES = {
  hour: {
    short: '1 h',
    name: '1 hour',
    bucket: '2 minutes',
    stepMs: 2 * MINUTE_MS,
    buckets: 30,
    labelMs: 10 * MINUTE_MS,
  },
  day: { short: '24 h', name: '24 hours', bucket: 'hour', stepMs: HOUR_MS, buckets: 24, labelMs: 6 * HOUR_MS },
  week: { short: '7 d', name: '7 days', bucket: '6 hours', stepMs: 6 * HOUR_MS, buckets: 28, labelMs: 2 * DAY_MS },
  month: { short: '30 d', name: '30 days', bucket: 'day', stepMs: DAY_MS, buckets: 30, labelMs: 5 * DAY_MS },
};

/**
 * The range that ends with the bucket of `now`.
 *
 * @param {RangeKey} key
 * @param {number} now Milliseconds.
 * @returns {Range}
 */
export function rangeAt(key, now) {
  const { stepMs, buckets } = RANGES[key];
  const to = (Math.floor(now / stepMs) + 1) * stepMs;
  return { key, from: to - buckets * stepMs, to, stepMs, buckets };
}

/**
 * The bucket of a moment; undefined outside the range, and for NaN.
 *
 * @param {Range} range
 * @param {number} at Milliseconds.
 */
export function bucketOf({ from, to, stepMs }, at) {
  return at >= from && at < to ? Math.floor((at - from) / stepMs) : undefined;
}

/**
 * When a bucket begins, milliseconds.
 *
 * @param {Range} range
 * @param {number} bucket From 0.
 */
export function beginOf({ from, stepMs }, bucket) {
  return from + bucket * stepMs;
}

/**
 * A moment as the page tells it, in UTC: `4 Feb` for a bucket of a day, else `4 Feb 14:05`.
 *
 * @param {number} at Milliseconds.
 * @param {number} [stepMs] Length of the bucket that begins then.
 */
export function utc(at, stepMs = 0) {
  const date = new Date(at);
  const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  return stepMs >= DAY_MS ? day : `${day} ${date.toISOString().slice(11, 16)}`;
}

/**
 * The labels of the axis of time: the hour, or the day where one begins.
 *
 * @param {Range} range
 * @returns {readonly { readonly bucket: number, readonly text: string }[]}
 */
export function labels(range) {
  const { labelMs } = RANGES[range.key];
  return Array.from({ length: range.buckets }, (_, bucket) => ({ bucket, at: beginOf(range, bucket) }))
    .filter(({ at }) => at % labelMs === 0)
    .map(({ bucket, at }) => ({ bucket, text: at % DAY_MS === 0 ? utc(at, DAY_MS) : utc(at).slice(-5) }));
}

/**
 * @typedef {ReturnType<typeof createTally>} Tally
 *
 * @typedef {object} Income Of one currency on one network, by bucket.
 * @property {string} currency
 * @property {string} network
 * @property {Decimal[]} delivered Of paid calls that were delivered.
 * @property {Decimal[]} open Settled, not delivered.
 */

/** Outcomes of calls that leave no receipt. */
export const WITHOUT_RECEIPT = /** @type {const} */ (['failed', 'refused', 'asked', 'requested']);

/**
 * When the money of a receipt moved; for a free call, when it was delivered. ISO 8601.
 *
 * @param {Receipt} receipt
 */
export function soldAt({ payment, at }) {
  return payment?.settledAt ?? at;
}

/**
 * @param {Range} range
 * @param {number} now Milliseconds: calls that may still run are left out.
 */
export function createTally(range, now) {
  /** @template T @param {() => T} make */
  const each = (make) => Array.from({ length: range.buckets }, make);
  const zeros = () => each(() => 0);
  /** @type {Map<string, Income>} */
  const income = new Map();
  const deliveries = { paid: zeros(), free: zeros(), lost: zeros() };
  const ends = { failed: zeros(), refused: zeros(), asked: zeros(), requested: zeros() };
  /** @type {number[][]} Milliseconds of each delivered call. */
  const durations = each(() => []);
  /** Payments that are in no sum. */
  const leftOut = { unreadable: 0, undecided: 0 };
  /** @type {Map<string, CommerceEvent[]>} Calls whose beginning is not read yet. */
  const open = new Map();

  /** @param {PaidReceipt} receipt @param {number} bucket */
  const addPayment = ({ payment: { amount, currency, network }, delivered }, bucket) => {
    const key = JSON.stringify([currency, network]);
    const sums = income.get(key) ?? { currency, network, delivered: each(() => ZERO), open: each(() => ZERO) };
    income.set(key, sums);
    const side = delivered ? sums.delivered : sums.open;
    const sum = decimal(amount);
    if (sum === undefined) leftOut.unreadable += 1;
    else side[bucket] = plus(side[bucket] ?? ZERO, sum);
  };

  return {
    /** By currency and network. */
    income: () => [...income.values()],
    deliveries,
    ends,
    durations,
    leftOut,
    /**
     * Adds receipts, each once, in any order. Those outside the range are ignored.
     *
     * @param {readonly Receipt[]} receipts
     */
    addReceipts(receipts) {
      for (const receipt of receipts) {
        const bucket = bucketOf(range, Date.parse(soldAt(receipt)));
        if (bucket === undefined) continue;
        if (receipt.delivered) durations[bucket]?.push(receipt.durationMs);
        if (!isPaid(receipt)) increase(deliveries.free, bucket);
        else if (receipt.payment.status === 'unknown') leftOut.undecided += 1;
        else if (!isRunning(receipt, now)) {
          increase(receipt.delivered ? deliveries.paid : deliveries.lost, bucket);
          addPayment(receipt, bucket);
        }
      }
    },
    /**
     * Adds events, each once, newest first over all additions. A call counts when its
     * request event comes, in the bucket of that event; one that left a receipt does not count.
     *
     * @param {readonly CommerceEvent[]} events
     */
    addEvents(events) {
      for (const event of events) {
        const { callId } = event;
        const later = open.get(callId) ?? [];
        later.push(event);
        open.set(callId, later);
        if (event.type !== 'resource.requested') continue;
        open.delete(callId);
        const { outcome } = callOf(callId, later.reverse());
        const bucket = bucketOf(range, Date.parse(event.at));
        const end = outcome === 'away' ? 'failed' : WITHOUT_RECEIPT.find((known) => known === outcome);
        if (end !== undefined && bucket !== undefined) increase(ends[end], bucket);
      }
    },
  };
}

/**
 * @param {number[]} counts
 * @param {number} bucket
 */
function increase(counts, bucket) {
  counts[bucket] = (counts[bucket] ?? 0) + 1;
}

export const CSV_TYPE = 'text/csv;charset=utf-8';

/** @typedef {string | number | boolean | undefined} Field */

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
