/** Adds up the receipts of paid calls. */

import { decimal, plus, ZERO } from './money.js';

/**
 * @typedef {import('./receipts.js').PaidReceipt} PaidReceipt
 * @typedef {import('./money.js').Decimal} Decimal
 *
 * @typedef {object} Revenue Of one resource, or of all (`resourceId` empty), in one currency on one
 *   network.
 * @property {string} resourceId
 * @property {string} currency
 * @property {string} network
 * @property {Decimal} revenue Of paid calls that were delivered.
 * @property {number} deliveries
 * @property {Decimal} open Settled, not delivered.
 * @property {string} lastDeliveredAt ISO 8601, empty before the first delivery.
 * @property {number} unreadable Payments whose amount is no decimal number.
 */

/**
 * By resource, the last delivery first, and in all, each by currency and network. Payments of
 * status `unknown` are left out: they are no income until the operator has decided.
 *
 * @param {readonly PaidReceipt[]} paid
 * @returns {{ readonly resources: readonly Revenue[], readonly totals: readonly Revenue[] }}
 */
export function revenueOf(paid) {
  /** @type {Map<string, Revenue>} */
  const resources = new Map();
  /** @type {Map<string, Revenue>} */
  const totals = new Map();
  for (const receipt of paid) {
    const { status, currency, network } = receipt.payment;
    if (status === 'unknown') continue;
    count(resources, [receipt.resourceId, currency, network], receipt);
    count(totals, ['', currency, network], receipt);
  }
  const bySale = [...resources.values()].sort((one, other) => (one.lastDeliveredAt < other.lastDeliveredAt ? 1 : -1));
  return { resources: bySale, totals: [...totals.values()] };
}

/**
 * @param {Map<string, Revenue>} book
 * @param {readonly [string, string, string]} key
 * @param {PaidReceipt} receipt
 */
function count(book, key, receipt) {
  const [resourceId, currency, network] = key;
  const id = JSON.stringify(key);
  const empty = { revenue: ZERO, deliveries: 0, open: ZERO, lastDeliveredAt: '', unreadable: 0 };
  const before = book.get(id) ?? { resourceId, currency, network, ...empty };
  const amount = decimal(receipt.payment.amount);
  const unreadable = before.unreadable + (amount === undefined ? 1 : 0);
  const sum = amount ?? ZERO;
  if (!receipt.delivered) {
    book.set(id, { ...before, open: plus(before.open, sum), unreadable });
    return;
  }
  const soldAt = receipt.deliveredAt ?? receipt.at;
  const lastDeliveredAt = soldAt > before.lastDeliveredAt ? soldAt : before.lastDeliveredAt;
  book.set(id, {
    ...before,
    revenue: plus(before.revenue, sum),
    deliveries: before.deliveries + 1,
    lastDeliveredAt,
    unreadable,
  });
}
