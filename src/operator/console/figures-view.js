/** Shows the sums: revenue, paid deliveries, undelivered payments and refunds that are due. */

import { byId, element } from './dom.js';
import { inDigits } from './money.js';
import { owed } from './owed.js';
import { revenueOf } from './revenue.js';

/** Most sums in different currencies that are shown; the table has all of them. */
const MAX_SUMS = 3;

export function figuresView() {
  const list = byId('figures', HTMLDListElement);
  let shown = '';
  /** @param {import('./session.js').Session} session */
  return ({ receipts, undelivered }) => {
    const open = owed(undelivered.paid(), Date.now());
    const due = open.filter(({ standing }) => standing === 'refundDue').length;
    const now = [receipts.version(), open.length, due].join();
    if (now === shown) return;
    shown = now;
    const { totals } = revenueOf(receipts.paid());
    const deliveries = totals.reduce((sum, total) => sum + total.deliveries, 0);
    const free = receipts.all().filter(({ payment, delivered }) => payment === undefined && delivered).length;
    list.replaceChildren(
      ...totals
        .slice(0, MAX_SUMS)
        .map(({ revenue, currency, network }) =>
          figure({ name: 'Revenue', value: inDigits(revenue), unit: currency, more: network }),
        ),
      ...(totals.length === 0 ? [figure({ name: 'Revenue', value: '0', more: 'nothing sold yet' })] : []),
      figure({ name: 'Paid deliveries', value: String(deliveries), more: `plus ${free} free` }),
      figure({
        name: 'Paid, not delivered',
        value: String(open.length),
        more: open.length === 0 ? 'nothing open' : 'listed below',
        tone: open.length === 0 ? 'quiet' : 'warn',
      }),
      figure({
        name: 'Refunds due',
        value: String(due),
        more: due === 0 ? 'nothing to send back' : 'to send back',
        tone: due === 0 ? 'quiet' : 'bad',
      }),
    );
  };
}

/**
 * @param {{
 *   readonly name: string,
 *   readonly value: string,
 *   readonly unit?: string,
 *   readonly more: string,
 *   readonly tone?: string,
 * }} figure
 */
function figure({ name, value, unit = '', more, tone = 'quiet' }) {
  return element(
    'div',
    { 'data-tone': tone, 'data-figure': name },
    element('dt', {}, name),
    element(
      'dd',
      {},
      element('span', { class: 'value' }, value),
      ...(unit === '' ? [] : [element('span', { class: 'unit' }, unit)]),
      element('span', { class: 'more' }, more),
    ),
  );
}
