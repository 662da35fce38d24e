/** Reads a range back from now, page by page, as far as the gateway keeps it. */

import { receiptRow } from './csv.js';
import { counted } from './format.js';
import { Refusal } from './gateway.js';
import { bucketOf, utc } from './ranges.js';
import { createTally, soldAt } from './tally.js';

/**
 * @typedef {import('./session.js').Gateway} Gateway
 * @typedef {import('./ranges.js').Range} Range
 * @typedef {import('./receipts.js').Receipt} Receipt
 * @typedef {import('./calls.js').CommerceEvent} CommerceEvent
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
 * @property {import('./tally.js').Tally} tally
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

/** Entries of a page: the most that the gateway gives. */
const PAGE = 500;
/** Most pages of a list: 200,000 entries. */
export const MAX_PAGES = 400;
/**
 * How much later than its id says a payment is settled at most, milliseconds. The id has the time
 * when the buyer signed, and an offer may be paid for an hour.
 */
const SIGNED_BEFORE_MS = 3_600_000;

/**
 * Never rejects: what was read before a refusal is the history.
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
 * How far receipts of delivered calls reach. The store drops these only, the oldest first: where
 * everything was read, the range is whole if an older one is left.
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
 * What is missing of the range, and what no sum holds.
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
 * @param {string} kept What it means that there are no older ones.
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
 * @param {(query: Readonly<Record<string, string>>) => Promise<import('./feed.js').Page<T>>} read
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
