/** Shows the payments that are settled and not delivered. */

import { byId, byTable, cell, element, rows, say, time } from './dom.js';
import { clock, shortened, span } from './format.js';
import { commonDecimals, decimal, inDigits, ZERO } from './money.js';
import { owed, refundFacts } from './owed.js';

/** @typedef {import('./owed.js').Owed} Owed */

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
 * @param {import('./owed.js').Standing} standing
 * @param {number} until
 * @param {number} now
 */
function collected(standing, until, now) {
  if (standing === 'refundDue' || standing === 'refunding') return 'no longer';
  if (standing === 'unknown') return 'once decided';
  return standing === 'collectable' ? `for ${span(until - now)}` : `ended ${clock(until, now)}`;
}

/**
 * The note that the answer is kept. After the time to collect it is kept no longer.
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
