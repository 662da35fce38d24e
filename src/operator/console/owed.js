/**
 * Payments that are settled and not delivered: their state, and the facts of a refund.
 *
 * @typedef {import('./receipts.js').PaidReceipt} PaidReceipt
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
 * Oldest first, without calls that may still run and without what was sent back.
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
 * What is needed to send the money back, as text.
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
