/** The states of a payment: which follows which (contract 4.3), and how long each is kept. */

import type { PaymentFacts, PaymentRecord, PaymentState } from './ledger.ts';

const HOUR_MS = 60 * 60 * 1_000;
/** How long a settled call can be collected with the same proof, milliseconds (contract 4.3). */
export const RETRY_WINDOW_MS = 24 * HOUR_MS;
/** The retry window and one hour on top (contract 4.3), milliseconds. */
export const RECORD_RETENTION_MS = RETRY_WINDOW_MS + HOUR_MS;

/** What waits for an operator is kept "for ever", milliseconds: ten years. */
const OPERATOR_RETENTION_MS = 10 * 365 * 24 * HOUR_MS;

/** How long a record is kept after its window or its last change, the later one, milliseconds. */
function retentionOf(state: PaymentState): number {
  return OPERATOR_STATES.includes(state) ? OPERATOR_RETENTION_MS : RECORD_RETENTION_MS;
}

/** When a record may be deleted, milliseconds of the store's clock: later with each change. */
export function expiresAt(record: PaymentRecord): number {
  return Math.max(record.validBefore * 1_000, record.changedAt) + retentionOf(record.state);
}

/** The whole state machine. What is not written here cannot happen. */
export const TRANSITIONS: Readonly<Record<PaymentState, readonly PaymentState[]>> = {
  reserved: ['worked', 'settling'],
  worked: ['settling', 'refused'],
  settling: ['settled', 'refused', 'withdrawn', 'unresolved'],
  unresolved: ['settled', 'refused'],
  withdrawn: ['settling'],
  settled: ['delivered', 'undelivered'],
  undelivered: ['delivered', 'undelivered', 'refundDue'],
  delivered: [],
  refused: [],
  refundDue: ['refunding', 'refunded'],
  // Signed again: an earlier transaction may have been dropped.
  refunding: ['refunding', 'refunded'],
  refunded: [],
};

const STATES = Object.keys(TRANSITIONS) as PaymentState[];

/** An operator alone leads on from these. */
const OPERATOR_STATES: readonly PaymentState[] = ['unresolved', 'refundDue', 'refunding'];

/** Nothing is delivered from these any more; from `unresolved` an operator may still lead there. */
export const OVER_STATES: readonly PaymentState[] = STATES.filter((state) => isFinal(state) && state !== 'unresolved');

/** States that still want work; each of them can be taken over. */
const OPEN_STATES: readonly PaymentState[] = STATES.filter((state) => !isFinal(state));

/** Money moved and nothing was delivered: a lease that runs out here is a delivery that died. */
export const DELIVERING_STATES: readonly PaymentState[] = ['settled', 'undelivered'];

/** From where a state can be reached. */
export function sourcesOf(to: PaymentState): readonly PaymentState[] {
  return STATES.filter((from) => TRANSITIONS[from].includes(to));
}

/** Whether no call and no reconciler goes on from here. */
export function isFinal(state: PaymentState): boolean {
  return OPERATOR_STATES.includes(state) || TRANSITIONS[state].length === 0;
}

/** Nothing is under way in these states, so nothing is signed. */
const IDLE_STATES: readonly PaymentState[] = ['reserved', 'worked', 'withdrawn'];

/**
 * Where facts may be noted: nothing but who buys its answer in a final state. A `reserved` record
 * may be deleted, so it must have no transaction.
 */
export function notableIn(facts: PaymentFacts): readonly PaymentState[] {
  if (facts.bought !== undefined) return ['refused'];
  const proves = facts.transaction !== undefined || facts.rawTransaction !== undefined;
  return proves ? OPEN_STATES.filter((state) => !IDLE_STATES.includes(state)) : OPEN_STATES;
}
