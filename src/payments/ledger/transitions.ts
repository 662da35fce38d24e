import type { PaymentFacts, PaymentRecord, PaymentState } from './ledger.ts';

const HOUR_MS = 60 * 60 * 1_000;
/**
 * How long a settled call can still be collected with the same proof, milliseconds (contract 4.3).
 */
export const RETRY_WINDOW_MS = 24 * HOUR_MS;
/** The retry window and one hour on top (contract 4.3), milliseconds. */
export const RECORD_RETENTION_MS = RETRY_WINDOW_MS + HOUR_MS;

/**
 * After this long past its due time an entry of the work list stands for a record that is certainly
 * forgotten, milliseconds: a proof is valid for at most 4,200 s ahead (contract 4.2) and a lease
 * lasts at most 600 s, far less than the second day.
 */
export const WORK_RETENTION_MS = 48 * 60 * 60 * 1_000;

/**
 * What waits for an operator's decision is not forgotten before it, milliseconds: ten years stand
 * for ever.
 */
const UNRESOLVED_RETENTION_MS = 10 * 365 * 24 * HOUR_MS;

/**
 * How long a record in this state is kept after its window or its last change, whichever is later,
 * milliseconds.
 */
export function retentionOf(state: PaymentState): number {
  return state === 'unresolved' ? UNRESOLVED_RETENTION_MS : RECORD_RETENTION_MS;
}

/** When a record may be forgotten, milliseconds of the store's clock: renewed with every change. */
export function expiresAt(record: PaymentRecord): number {
  return Math.max(record.validBefore * 1_000, record.changedAt) + retentionOf(record.state);
}

/** The whole state machine (contract 4.3). What is not written here cannot happen. */
export const TRANSITIONS: Readonly<Record<PaymentState, readonly PaymentState[]>> = {
  reserved: ['settling'],
  settling: ['settled', 'refused', 'withdrawn', 'unresolved'],
  unresolved: ['settled', 'refused'],
  withdrawn: ['settling'],
  settled: ['delivered', 'undelivered'],
  undelivered: ['delivered', 'undelivered', 'refundDue'],
  delivered: [],
  refused: [],
  refundDue: [],
};

const STATES = Object.keys(TRANSITIONS) as PaymentState[];

/** States that nothing leads out of. */
export const FINAL_STATES: readonly PaymentState[] = STATES.filter((state) => TRANSITIONS[state].length === 0);

/** States that still want work; each of them can be taken over. */
export const OPEN_STATES: readonly PaymentState[] = STATES.filter((state) => !isFinal(state));

/** Money moved and nothing was delivered: a lease that runs out here is a delivery that died. */
export const DELIVERING_STATES: readonly PaymentState[] = ['settled', 'undelivered'];

/** From where a state can be reached. */
export function sourcesOf(to: PaymentState): readonly PaymentState[] {
  return STATES.filter((from) => TRANSITIONS[from].includes(to));
}

/**
 * Whether no call and no reconciler goes on from here. Out of `unresolved` only an operator's
 * decision leads.
 */
export function isFinal(state: PaymentState): boolean {
  return state === 'unresolved' || TRANSITIONS[state].length === 0;
}

/** Nothing is under way in these states, so nothing is signed. */
const IDLE_STATES: readonly PaymentState[] = ['reserved', 'withdrawn'];

/**
 * Where facts may be noted. A transaction exists only once a settlement was begun: a `reserved`
 * record may be deleted.
 */
export function notableIn(facts: PaymentFacts): readonly PaymentState[] {
  const proves = facts.transaction !== undefined || facts.rawTransaction !== undefined;
  return proves ? OPEN_STATES.filter((state) => !IDLE_STATES.includes(state)) : OPEN_STATES;
}
