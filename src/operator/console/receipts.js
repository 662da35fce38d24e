/**
 * The receipts that the page has read, their sums, and the debts to buyers among them.
 *
 * @typedef {import('../../receipts/receipt.ts').ReceiptPayment} Payment
 * @typedef {import('../../receipts/receipt.ts').Receipt} Receipt
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
     * Adds receipts, or replaces changed ones. Above the bound the oldest are dropped.
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

/**
 * @typedef {'refundDue' | 'refunding' | 'collectable' | 'expired' | 'unknown'} Standing
 * @typedef {{
 *   readonly receipt: PaidReceipt,
 *   readonly standing: Standing,
 *   readonly until: number,
 * }} Owed `until`: milliseconds.
 */

/** How long a buyer may collect a delivery, milliseconds (contract 4.3). */
const COLLECT_MS = 24 * 60 * 60 * 1_000;
/** Members of the metadata that a receipt may have before its call has ended. */
const FROM_THE_START = new Set(['callId', 'channel']);
/** Longest run of a call after its settlement: the longest deadline and 30 s, milliseconds. */
export const RUNNING_MS = 150_000;

/**
 * The debts to buyers, oldest first, without calls that may run and without refunded payments.
 *
 * @param {readonly PaidReceipt[]} undelivered
 * @param {number} now Milliseconds.
 * @returns {readonly Owed[]}
 */
export function owed(undelivered, now) {
  return undelivered
    .filter((receipt) => !isRunning(receipt, now) && receipt.refund?.status !== 'refunded')
    .map((receipt) => {
      const until = Date.parse(receipt.payment.settledAt) + COLLECT_MS;
      return { receipt, standing: standing(receipt, until, now), until };
    })
    .sort((one, other) => one.until - other.until);
}

/**
 * Whether the call of a receipt may still run.
 *
 * @param {PaidReceipt} receipt
 * @param {number} now
 */
export function isRunning({ payment, metadata = {}, backendStatus }, now) {
  const withoutOutcome = backendStatus === 0 && Object.keys(metadata).every((name) => FROM_THE_START.has(name));
  return withoutOutcome && now - Date.parse(payment.settledAt) < RUNNING_MS;
}

/**
 * @param {PaidReceipt} receipt
 * @param {number} until
 * @param {number} now
 * @returns {Standing}
 */
function standing({ payment, metadata, refund }, until, now) {
  if (payment.status === 'unknown') return 'unknown';
  if (refund?.status === 'refunding') return 'refunding';
  if (metadata?.refundDue === true) return 'refundDue';
  return until > now ? 'collectable' : 'expired';
}

/**
 * The facts that a refund needs, as text.
 *
 * @param {Owed} owed
 */
export function refundFacts({ receipt, standing, until }) {
  const { payment, metadata } = receipt;
  const end = new Date(until).toISOString();
  const state = {
    refundDue: 'refund due, the buyer can no longer collect',
    refunding: 'being sent back: acg refunds pay looks at the chain before it sends anything',
    collectable: `NOT YET: the buyer may collect until ${end}`,
    unknown: 'DO NOT SEND: nothing could tell whether it was paid; look for it, then acg reconcile --decide',
    expired: `the time to collect ended ${end}, the gateway has not closed it yet`,
  };
  const lines = {
    state: state[standing],
    ...(standing === 'refundDue' || standing === 'refunding'
      ? { command: `acg refunds pay ${receipt.id} --key-file FILE` }
      : {}),
    amount: `${payment.amount} ${payment.currency}`,
    'send to': payment.payer,
    'paid to': payment.payee,
    network: payment.network,
    asset: payment.asset,
    transaction: payment.externalReference || 'unknown',
    ...(metadata?.deliveryUncertain === true
      ? { 'may have arrived': 'bytes of the answer left, or may have: ask the payer first' }
      : {}),
    'settled at': payment.settledAt,
    resource: receipt.resourceId,
    request: receipt.requestId,
    ...(metadata?.callId === undefined ? {} : { call: metadata.callId }),
    receipt: receipt.id,
    ...(metadata?.backendErrorCode === undefined ? {} : { failure: metadata.backendErrorCode }),
  };
  // A line break in a value could look like another fact.
  return Object.entries(lines)
    .map(([name, value]) => `${name}: ${value.replace(/\s+/g, ' ')}`)
    .join('\n');
}

/**
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
 * Revenue by resource, the last delivery first, and in all, each by currency and network. Payments
 * of status `unknown` are left out: they are no income until the operator has decided.
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

/**
 * Amounts are summed exactly: prices have up to 36 decimals, a double only 15 digits.
 *
 * @typedef {{ readonly units: bigint, readonly scale: number }} Decimal `units` / 10^`scale`, never
 *   negative.
 */

const DECIMAL = /^\d{1,60}(?:\.\d{1,36})?$/;
/** Decimals that a price has at least when it is shown. */
const LEAST_DECIMALS = 2;

/** @type {Decimal} */
export const ZERO = { units: 0n, scale: 0 };

/**
 * Undefined for an invalid amount, which must not count as 0.
 *
 * @param {unknown} text
 * @returns {Decimal | undefined}
 */
export function decimal(text) {
  if (typeof text !== 'string' || !DECIMAL.test(text)) return undefined;
  const [whole = '', decimals = ''] = text.split('.');
  return { units: BigInt(whole + decimals), scale: decimals.length };
}

/**
 * @param {Decimal} one
 * @param {Decimal} other
 * @returns {Decimal}
 */
export function plus(one, other) {
  const scale = Math.max(one.scale, other.scale);
  return { units: unitsAt(one, scale) + unitsAt(other, scale), scale };
}

/**
 * The number of decimals that shows all of these amounts exactly, so that a column lines up.
 *
 * @param {readonly Decimal[]} amounts
 */
export function commonDecimals(amounts) {
  return Math.max(LEAST_DECIMALS, ...amounts.map(({ units, scale }) => significant(units, scale)));
}

/**
 * The exact amount, whole digits in groups of three, with at least `decimals` decimals.
 *
 * @param {Decimal} amount
 * @param {number} [decimals]
 */
export function inDigits(amount, decimals = LEAST_DECIMALS) {
  const shown = Math.max(decimals, significant(amount.units, amount.scale));
  const units = amount.scale > shown ? amount.units / 10n ** BigInt(amount.scale - shown) : unitsAt(amount, shown);
  const digits = units.toString().padStart(shown + 1, '0');
  const whole = digits.slice(0, digits.length - shown).replace(/\B(?=(?:\d{3})+$)/g, '\u202f');
  return shown === 0 ? whole : `${whole}.${digits.slice(-shown)}`;
}

/**
 * The exact amount as a program reads it: `1234.5`.
 *
 * @param {Decimal} amount
 */
export function digits(amount) {
  return inDigits(amount, 0).replaceAll('\u202f', '');
}

/**
 * The next round amount, which is not below it: 1, 2, 4, 6 or 8 and zeros.
 *
 * @param {Decimal} amount
 * @returns {Decimal}
 */
export function roundUp({ units, scale }) {
  const digit = 10n ** BigInt(units.toString().length - 1);
  const least = [1n, 2n, 4n, 6n, 8n, 10n].find((leading) => leading * digit >= units) ?? 10n;
  return { units: units === 0n ? 0n : least * digit, scale };
}

/**
 * A part of an amount in percent, for the length of a bar.
 *
 * @param {Decimal} part
 * @param {Decimal} amount
 */
export function percent(part, amount) {
  const scale = Math.max(part.scale, amount.scale);
  const all = unitsAt(amount, scale);
  return all === 0n ? 0 : Number((unitsAt(part, scale) * 10_000n) / all) / 100;
}

/**
 * @param {Decimal} one
 * @param {Decimal} other
 */
export function larger(one, other) {
  const scale = Math.max(one.scale, other.scale);
  return unitsAt(one, scale) < unitsAt(other, scale) ? other : one;
}

/**
 * @param {number} count
 * @returns {Decimal}
 */
export function whole(count) {
  return { units: BigInt(count), scale: 0 };
}

/**
 * @param {Decimal} amount
 * @param {number} scale
 */
function unitsAt({ units, scale: own }, scale) {
  return units * 10n ** BigInt(scale - own);
}

/**
 * The number of decimals without zeros at the end.
 *
 * @param {bigint} units
 * @param {number} scale
 */
function significant(units, scale) {
  let left = units;
  let decimals = scale;
  while (decimals > 0 && left % 10n === 0n) {
    left /= 10n;
    decimals -= 1;
  }
  return decimals;
}
