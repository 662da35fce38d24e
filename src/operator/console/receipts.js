/**
 * A bounded set of the receipts that the page has read.
 *
 * @typedef {import('../../receipts/receipt.ts').Receipt} Receipt
 * @typedef {import('../../receipts/receipt.ts').ReceiptPayment} Payment
 * @typedef {Receipt & { readonly payment: Payment }} PaidReceipt
 */

/** Receipts that are kept: as many as a store keeps by default. */
export const MAX_RECEIPTS = 50_000;
/** The oldest receipts that are dropped at once, so that not every look has to sort them. */
const DROPPED_AT_ONCE = 500;

export function createReceipts() {
  /** @type {Map<string, Receipt>} */
  const receipts = new Map();
  let version = 0;

  /** @param {Receipt} receipt */
  const put = (receipt) => {
    const before = receipts.get(receipt.id);
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(receipt)) return;
    receipts.set(receipt.id, receipt);
    version += 1;
  };

  return {
    /** Grows with every change. */
    version: () => version,
    size: () => receipts.size,
    /** Whether a further page of older ones would drop receipts. */
    full: () => receipts.size > MAX_RECEIPTS - DROPPED_AT_ONCE,
    all: () => [...receipts.values()],
    paid: () => [...receipts.values()].filter(isPaid),
    /** When the oldest of them was written, ISO 8601; empty without any. */
    since: () => [...receipts.values()].reduce((least, { at }) => (least === '' || at < least ? at : least), ''),
    /** @param {string} id */
    knows: (id) => receipts.has(id),
    /**
     * Adds, or replaces what has changed. Above the bound the oldest are dropped.
     *
     * @param {readonly Receipt[]} more
     */
    add(more) {
      for (const receipt of more) put(receipt);
      if (receipts.size <= MAX_RECEIPTS) return;
      const oldest = [...receipts.keys()].sort().slice(0, receipts.size - MAX_RECEIPTS + DROPPED_AT_ONCE);
      for (const id of oldest) receipts.delete(id);
    },
    /**
     * Replaces known receipts, and adds none.
     *
     * @param {readonly Receipt[]} changed
     */
    replace(changed) {
      for (const receipt of changed) if (receipts.has(receipt.id)) put(receipt);
    },
    /** @param {string} id */
    forget(id) {
      if (receipts.delete(id)) version += 1;
    },
  };
}

/**
 * @param {Receipt} receipt
 * @returns {receipt is PaidReceipt}
 */
export function isPaid(receipt) {
  return receipt.payment !== undefined;
}

/**
 * @param {Receipt} receipt
 * @returns {receipt is PaidReceipt}
 */
export function isUndelivered(receipt) {
  return isPaid(receipt) && (!receipt.delivered || receipt.metadata?.refundDue === true);
}
