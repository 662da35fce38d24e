/** Counts receipts and events of a range by bucket. */

import { callOf } from './calls.js';
import { decimal, plus, ZERO } from './money.js';
import { isRunning } from './owed.js';
import { bucketOf } from './ranges.js';
import { isPaid } from './receipts.js';

/**
 * @typedef {import('./calls.js').CommerceEvent} CommerceEvent
 * @typedef {import('./money.js').Decimal} Decimal
 * @typedef {import('./ranges.js').Range} Range
 * @typedef {import('./receipts.js').PaidReceipt} PaidReceipt
 * @typedef {import('./receipts.js').Receipt} Receipt
 * @typedef {ReturnType<typeof createTally>} Tally
 *
 * @typedef {object} Income Of one currency on one network, by bucket.
 * @property {string} currency
 * @property {string} network
 * @property {Decimal[]} delivered Of paid calls that were delivered.
 * @property {Decimal[]} open Settled, not delivered.
 */

/** How a call ends that leaves no receipt. */
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
     * Adds events, each once, newest first over all calls of this. A call is counted, in the bucket
     * in which it was requested, when its request comes; those that left a receipt are not.
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
