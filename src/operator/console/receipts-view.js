/**
 * Shows the receipts: sums, payments that are not delivered, and revenue by resource.
 *
 * @typedef {import('./receipts.js').Owed} Owed
 * @typedef {import('./receipts.js').Revenue} Revenue
 * @typedef {import('./session.js').Session} Session
 */

import { byId, byTable, cell, element, rows, say, time } from './dom.js';
import { clock, counted, shortened, span } from './format.js';
import { commonDecimals, decimal, inDigits, owed, refundFacts, revenueOf, ZERO } from './receipts.js';

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

/** Between two renewals of the times that are left, milliseconds. */
const MINUTE_MS = 60_000;

const STANDING = {
  refundDue: { label: 'Refund due', tone: 'bad' },
  refunding: { label: 'Being sent back', tone: 'warn' },
  unknown: { label: 'Paid or not?', tone: 'bad' },
  expired: { label: 'Time is over', tone: 'warn' },
  collectable: { label: 'Can be collected', tone: 'quiet' },
};

/** @param {(facts: string) => void} copy Takes the facts of a refund. */
export function owedView(copy) {
  const body = byId('owed', HTMLTableSectionElement);
  const note = byId('owed-note', HTMLParagraphElement);
  const empty = byId('owed-empty', HTMLParagraphElement);
  let decimals = 2;
  const show = rows(body, {
    key: (/** @type {Owed} */ { receipt }) => receipt.id,
    version: (entry) => [JSON.stringify(entry), decimals, Math.floor(Date.now() / MINUTE_MS)].join(),
    cells: (entry) => cells(entry, decimals, copy),
  });
  /** @param {import('./session.js').Session} session */
  return ({ undelivered }) => {
    const entries = owed(undelivered.paid(), Date.now());
    decimals = commonDecimals(entries.map(({ receipt }) => decimal(receipt.payment.amount) ?? ZERO));
    show(entries);
    byTable(body).hidden = entries.length === 0;
    say(note, entries.length === 0 ? '' : 'Oldest first. Send money back only where a refund is due: acg refunds pay.');
    say(empty, entries.length === 0 ? 'Nothing open: every settled payment was delivered.' : '');
  };
}

/**
 * @param {Owed} entry
 * @param {number} decimals
 * @param {(facts: string) => void} copy
 */
function cells(entry, decimals, copy) {
  const { receipt, standing, until } = entry;
  const { payment, metadata } = receipt;
  const { label, tone } = STANDING[standing];
  const now = Date.now();
  const settledAt = Date.parse(payment.settledAt);
  const amount = decimal(payment.amount);
  const button = element('button', { type: 'button', 'data-act': 'copy' }, 'Copy facts');
  button.setAttribute('aria-label', `Copy the refund facts of ${receipt.id}`);
  button.addEventListener('click', () => copy(refundFacts(entry)));
  const code = metadata?.backendErrorCode;
  return [
    cell(
      'State',
      'state',
      element('span', { class: 'badge', 'data-tone': tone }, label),
      more(code),
      more(kept(entry)),
      more(metadata?.deliveryUncertain === true ? 'May have arrived' : undefined),
    ),
    cell('Resource', 'main', element('span', { class: 'id' }, receipt.resourceId)),
    cell(
      'Amount',
      'number',
      element(
        'span',
        { class: 'amount' },
        `${amount ? inDigits(amount, decimals) : payment.amount} ${payment.currency}`,
      ),
      more(payment.network),
    ),
    cell('Payer', 'code payer', element('span', { title: payment.payer }, shortened(payment.payer))),
    cell(
      'Transaction',
      'code transaction',
      element('span', { title: payment.externalReference }, shortened(payment.externalReference) || 'unknown'),
    ),
    cell('Settled', 'when settled', time(settledAt, clock(settledAt, now)), more(`${span(now - settledAt)} ago`)),
    cell('To be collected', 'when until', time(until, collected(standing, until, now))),
    cell('Refund facts', 'act', button),
  ];
}

/**
 * @param {import('./receipts.js').Standing} standing
 * @param {number} until
 * @param {number} now
 */
function collected(standing, until, now) {
  if (standing === 'refundDue' || standing === 'refunding') return 'no longer';
  if (standing === 'unknown') return 'once decided';
  return standing === 'collectable' ? `for ${span(until - now)}` : `ended ${clock(until, now)}`;
}

/**
 * The note that the answer is kept, until the time to collect it is over.
 *
 * @param {Owed} entry
 */
function kept({ receipt: { metadata }, standing }) {
  return metadata?.answerKept === true && standing === 'collectable'
    ? 'Answer is kept; the buyer collects it with the same proof'
    : undefined;
}

/** @param {string | undefined} text */
function more(text) {
  return text === undefined ? '' : element('span', { class: 'more' }, text);
}

const BY_HAND = 'Selected: copy it with Ctrl+C, or ⌘C.';

/**
 * Shows the facts of a refund as selected text, and copies them where the page may write to the
 * clipboard (not over plain HTTP on another host).
 *
 * @param {(text: string) => void} announce
 */
export function refundView(announce) {
  const dialog = byId('refund', HTMLDialogElement);
  const text = byId('refund-text', HTMLTextAreaElement);
  const note = byId('refund-note', HTMLParagraphElement);
  byId('refund-close', HTMLButtonElement).addEventListener('click', () => dialog.close());

  /** @param {string} facts */
  const copied = async (facts) => {
    try {
      await navigator.clipboard.writeText(facts);
      return true;
    } catch {
      return false;
    }
  };

  return {
    /** @param {string} facts */
    async copy(facts) {
      // Shown first: a browser may ask its user before a page may write to the clipboard.
      text.value = facts;
      say(note, BY_HAND);
      dialog.showModal();
      text.focus();
      text.select();
      text.scrollTop = 0;
      if (!(await copied(facts)) || text.value !== facts) return;
      say(note, 'Copied to the clipboard.');
      announce('Refund facts copied');
    },
    /** Closes the dialog, and forgets its facts. */
    clear() {
      text.value = '';
      dialog.close();
    },
  };
}

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
    cells: (row) => revenueCells(row, names.get(row.resourceId), decimals),
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
function revenueCells(
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
