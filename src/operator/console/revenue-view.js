import { byId, byTable, cell, element, rows, say, time } from './dom.js';
import { commonDecimals, inDigits } from './money.js';
import { takings } from './takings.js';
import { clock, counted } from './words.js';

/**
 * @typedef {import('./session.js').Session} Session
 * @typedef {import('./takings.js').Takings} Takings
 */

/** Shows what was sold, by resource. */
export function revenueView() {
  const body = byId('revenue', HTMLTableSectionElement);
  const note = byId('revenue-note', HTMLParagraphElement);
  const empty = byId('revenue-empty', HTMLParagraphElement);
  const older = byId('older', HTMLButtonElement);
  let decimals = 2;
  /** @type {ReadonlyMap<string, string>} */
  let names = new Map();
  const show = rows(body, {
    key: (/** @type {Takings} */ { resourceId, currency, network }) => JSON.stringify([resourceId, currency, network]),
    version: (row) =>
      [
        inDigits(row.revenue, decimals),
        inDigits(row.open),
        row.sales,
        row.lastSaleAt,
        row.unreadable,
        names.size,
      ].join(),
    cells: (row) => cells(row, names.get(row.resourceId), decimals),
  });
  let shown = '';
  /** @param {Session} session */
  return ({ books, facts, hasOlder, hasGap }) => {
    const now = [books.version(), facts.names.size, hasOlder(), hasGap()].join();
    if (now === shown) return;
    shown = now;
    names = facts.names;
    const { resources } = takings(books.paid());
    decimals = commonDecimals(resources.map(({ revenue }) => revenue));
    show(resources);
    byTable(body).hidden = resources.length === 0;
    older.hidden = !hasOlder();
    const since = Date.parse(books.since());
    const missing = hasGap() ? ' Some in between are missing: reload the page.' : '';
    say(
      note,
      books.size() === 0 ? '' : `${counted(books.size(), 'receipt')} since ${clock(since, Date.now())}.${missing}`,
    );
    say(
      empty,
      resources.length > 0
        ? ''
        : 'Nothing sold yet. Call a priced resource without a payment to see the terms that agents are offered.',
    );
  };
}

/**
 * @param {Takings} row
 * @param {string | undefined} name
 * @param {number} decimals
 */
function cells({ resourceId, currency, network, revenue, sales, open, lastSaleAt, unreadable }, name, decimals) {
  const at = Date.parse(lastSaleAt);
  const owes = open.units === 0n ? [] : [element('span', { class: 'more' }, `+ ${inDigits(open)} not delivered`)];
  const odd = unreadable === 0 ? [] : [element('span', { class: 'more' }, `${unreadable} not readable`)];
  return [
    cell(
      'Resource',
      'main',
      element('span', { class: 'id' }, resourceId),
      element('span', { class: 'more' }, name ?? ''),
    ),
    cell('Sold', 'number sold', String(sales)),
    cell(
      'Revenue',
      'number sum',
      element('span', { class: 'amount' }, `${inDigits(revenue, decimals)} ${currency}`),
      element('span', { class: 'more' }, network),
      ...owes,
      ...odd,
    ),
    cell('Last sale', 'when', sales === 0 ? '–' : time(at, clock(at, Date.now()))),
  ];
}
