/** Shows the revenue by resource. */

import { byId, byTable, cell, element, rows, say, time } from './dom.js';
import { clock, counted } from './format.js';
import { commonDecimals, inDigits } from './money.js';
import { revenueOf } from './revenue.js';

/**
 * @typedef {import('./session.js').Session} Session
 * @typedef {import('./revenue.js').Revenue} Revenue
 */

export function revenueView() {
  const body = byId('revenue', HTMLTableSectionElement);
  const note = byId('revenue-note', HTMLParagraphElement);
  const empty = byId('revenue-empty', HTMLParagraphElement);
  const older = byId('older', HTMLButtonElement);
  let decimals = 2;
  /** @type {ReadonlyMap<string, string>} */
  let names = new Map();
  const show = rows(body, {
    key: (/** @type {Revenue} */ { resourceId, currency, network }) => JSON.stringify([resourceId, currency, network]),
    version: (row) =>
      [
        inDigits(row.revenue, decimals),
        inDigits(row.open),
        row.deliveries,
        row.lastDeliveredAt,
        row.unreadable,
        names.size,
      ].join(),
    cells: (row) => cells(row, names.get(row.resourceId), decimals),
  });
  let shown = '';
  /** @param {Session} session */
  return ({ receipts, facts, hasOlder, hasGap }) => {
    const now = [receipts.version(), facts.names.size, hasOlder(), hasGap()].join();
    if (now === shown) return;
    shown = now;
    names = facts.names;
    const { resources } = revenueOf(receipts.paid());
    decimals = commonDecimals(resources.map(({ revenue }) => revenue));
    show(resources);
    byTable(body).hidden = resources.length === 0;
    older.hidden = !hasOlder();
    const since = Date.parse(receipts.since());
    const missing = hasGap() ? ' Some in between are missing: reload the page.' : '';
    say(
      note,
      receipts.size() === 0
        ? ''
        : `${counted(receipts.size(), 'receipt')} since ${clock(since, Date.now())}.${missing}`,
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
 * @param {Revenue} row
 * @param {string | undefined} name
 * @param {number} decimals
 */
function cells(
  { resourceId, currency, network, revenue, deliveries, open, lastDeliveredAt, unreadable },
  name,
  decimals,
) {
  const at = Date.parse(lastDeliveredAt);
  const owes = open.units === 0n ? [] : [element('span', { class: 'more' }, `+ ${inDigits(open)} not delivered`)];
  const odd = unreadable === 0 ? [] : [element('span', { class: 'more' }, `${unreadable} not readable`)];
  return [
    cell(
      'Resource',
      'main',
      element('span', { class: 'id' }, resourceId),
      element('span', { class: 'more' }, name ?? ''),
    ),
    cell('Sold', 'number sold', String(deliveries)),
    cell(
      'Revenue',
      'number sum',
      element('span', { class: 'amount' }, `${inDigits(revenue, decimals)} ${currency}`),
      element('span', { class: 'more' }, network),
      ...owes,
      ...odd,
    ),
    cell('Last sale', 'when', deliveries === 0 ? '–' : time(at, clock(at, Date.now()))),
  ];
}
