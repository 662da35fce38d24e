import type { PaymentFacts, PaymentState } from './ledger.ts';

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

/** Whether no call and no reconciler goes on from here. Out of `unresolved` only an operator's decision leads. */
export function isFinal(state: PaymentState): boolean {
  return state === 'unresolved' || TRANSITIONS[state].length === 0;
}

/** Nothing is under way in these states, so nothing is signed. */
const IDLE_STATES: readonly PaymentState[] = ['reserved', 'withdrawn'];

/** Where facts may be noted. A transaction exists only once a settlement was begun: a `reserved` record may be deleted. */
export function notableIn(facts: PaymentFacts): readonly PaymentState[] {
  const proves = facts.transaction !== undefined || facts.rawTransaction !== undefined;
  return proves ? OPEN_STATES.filter((state) => !IDLE_STATES.includes(state)) : OPEN_STATES;
}
