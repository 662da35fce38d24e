import { decimal, plus, ZERO } from './money.js';

/**
 * What was sold, added up.
 *
 * @typedef {import('./books.js').PaidReceipt} PaidReceipt
 * @typedef {import('./money.js').Decimal} Decimal
 *
 * @typedef {object} Takings Of one resource (or of all, `resourceId` empty) in one currency on one network.
 * @property {string} resourceId
 * @property {string} currency
 * @property {string} network
 * @property {Decimal} revenue Of paid calls that were delivered.
 * @property {number} sales
 * @property {Decimal} open Settled, not delivered.
 * @property {string} lastSaleAt ISO 8601, empty before the first sale.
 * @property {number} unreadable Payments whose amount is no decimal number.
 */

/**
 * By resource, the one sold last first; and in all, by currency and network. What nothing could tell whether it was paid is left out: it
 * is no income, and stands among what is open until the operator has decided it.
 *
 * @param {readonly PaidReceipt[]} paid
 * @returns {{ readonly resources: readonly Takings[], readonly totals: readonly Takings[] }}
 */
export function takings(paid) {
  /** @type {Map<string, Takings>} */
  const resources = new Map();
  /** @type {Map<string, Takings>} */
  const totals = new Map();
  for (const receipt of paid) {
    const { status, currency, network } = receipt.payment;
    if (status === 'unknown') continue;
    count(resources, [receipt.resourceId, currency, network], receipt);
    count(totals, ['', currency, network], receipt);
  }
  const bySale = [...resources.values()].sort((one, other) => (one.lastSaleAt < other.lastSaleAt ? 1 : -1));
  return { resources: bySale, totals: [...totals.values()] };
}

/**
 * @param {Map<string, Takings>} book
 * @param {readonly [string, string, string]} key
 * @param {PaidReceipt} receipt
 */
function count(book, key, receipt) {
  const [resourceId, currency, network] = key;
  const id = JSON.stringify(key);
  const empty = { revenue: ZERO, sales: 0, open: ZERO, lastSaleAt: '', unreadable: 0 };
  const before = book.get(id) ?? { resourceId, currency, network, ...empty };
  const amount = decimal(receipt.payment.amount);
  const unreadable = before.unreadable + (amount === undefined ? 1 : 0);
  const sum = amount ?? ZERO;
  if (!receipt.delivered) {
    book.set(id, { ...before, open: plus(before.open, sum), unreadable });
    return;
  }
  const soldAt = receipt.deliveredAt ?? receipt.at;
  const lastSaleAt = soldAt > before.lastSaleAt ? soldAt : before.lastSaleAt;
  book.set(id, { ...before, revenue: plus(before.revenue, sum), sales: before.sales + 1, lastSaleAt, unreadable });
}
