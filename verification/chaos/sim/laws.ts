/** What must hold at every moment of a simulated run. */

import type { PaymentState } from '../../../src/payments/ledger/ledger.ts';
import { isFinal, TRANSITIONS } from '../../../src/payments/ledger/table.ts';
import { MOST_SENDINGS } from '../../../src/payments/settlement/attempt.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import { type BuyerPlan, type Ending, KEEP_ANSWER_MS, LEAST_SECONDS, type Purchase } from './buyer.ts';
import { requestIdOf } from './gateway.ts';
import { wrongUses } from './mandate.ts';
import type { SimChain } from './rail.ts';
import type { Change, HeldRecord, SimStore } from './store.ts';
import type { Setting, World } from './world.ts';

/** An attempt, as far as the laws judge it. */
export interface Attempt {
  readonly payId: string;
  readonly nonce: string;
  /** The backend's answer to this input. */
  readonly expected: string;
  /** Digests of the secrets that it sends with the proof: a key, a token, both or none. */
  readonly secrets: readonly string[];
  /** The secret that the record was made with, when the attempt came in. */
  readonly guardedBy: string | undefined;
  readonly arrivedAt: number;
}

const PAID: ReadonlySet<PaymentState> = new Set(['settled', 'delivered', 'undelivered', 'refundDue']);
/** What must be left of the window of a proof, and the margin of clocks, milliseconds. */
const LAST_SECONDS_MS = { before: 10_000, after: (LEAST_SECONDS + 4) * 1_000 } as const;
/** From the reading of a kept answer to its last byte, at most, milliseconds. */
const READ_MS = 100_000;
/** Both clocks count whole milliseconds. */
const CLOCK_GRAIN_MS = 2;

/** The secret that a call must send with the proof; undefined: none. */
export function secretOf(record: HeldRecord | undefined): string | undefined {
  return record?.keyDigest ?? record?.tokenDigest;
}

/** What must hold at every step. It judges by the chain, which the code under test cannot write. */
export class Laws {
  readonly violations: string[] = [];
  /** Nonces for which a buyer got a 402. */
  readonly #challenged = new Set<string>();
  /**
   * The store lost the record, and the proof came again in its last seconds: the one case in which
   * a 402 can charge twice.
   */
  readonly excused = new Set<string>();
  /** Payments of which a gateway warned that an answer leaves without its mark. */
  readonly unmarked = new Set<string>();
  /** What was handed out for each payment. */
  readonly #handed = new Map<string, Set<string>>();
  readonly #nonces = new Map<string, string>();
  readonly #chain: SimChain;
  readonly #now: () => number;

  readonly #log: (line: string) => void;
  readonly #settle: Setting['settle'];

  constructor(settle: Setting['settle'], chain: SimChain, now: () => number, log: (line: string) => void) {
    this.#settle = settle;
    this.#chain = chain;
    this.#now = now;
    this.#log = log;
  }

  broken(law: string): void {
    this.#log(`!! ${law}`);
    if (!this.violations.includes(law)) this.violations.push(law);
  }

  signed(payId: string, nonce: string): void {
    this.#nonces.set(payId, nonce);
  }

  nonceOf(payId: string): string {
    return this.#nonces.get(payId) ?? '';
  }

  handedOut(payId: string): boolean {
    return this.#handed.has(payId);
  }

  /** A 402 is about to be answered. */
  challenged({ nonce }: Attempt, damaged: boolean): void {
    // The window check comes first (contract 4.2, step 3), and in these seconds a lagging chain
    // cannot show what the store lost.
    const endsIn = this.#chain.validBefore(nonce) * 1_000 - this.#now();
    const last = LAST_SECONDS_MS[this.#settle];
    if (damaged && endsIn < last && endsIn > -last) {
      this.excused.add(nonce);
      return;
    }
    this.#challenged.add(nonce);
    if (this.#chain.paid(nonce)) this.broken('402 for an authorization that has paid');
  }

  /** The last byte of an answer is handed over. */
  answered(attempt: Attempt, body: string, store: SimStore): void {
    const { payId, nonce, expected, secrets } = attempt;
    const record = store.records.get(payId);
    const damaged = store.damaged.has(payId);
    if (!this.#chain.paid(nonce)) this.broken('an answer without a payment');
    if (body !== expected) this.broken('an answer to something else');
    const { guardedBy } = attempt;
    const secret = secretOf(record);
    // A deleted reservation has no secret any more.
    if (!damaged && guardedBy !== undefined && guardedBy === secret && !secrets.includes(guardedBy))
      this.broken('a guarded answer to a call without its secret');
    if (!damaged && (record === undefined || !PAID.has(record.state)))
      this.broken('an answer without a settled record');
    const isOpen = record?.state === 'settled' || record?.state === 'undelivered';
    if (!damaged && isOpen && record.sending !== 'begun' && !this.unmarked.has(payId))
      this.broken('an answer leaves unmarked');
    const late = record?.state === 'delivered' && attempt.arrivedAt > record.changedAt + CLOCK_GRAIN_MS;
    const kept = late && record.keyDigest === undefined ? record.changedAt + KEEP_ANSWER_MS : Number.POSITIVE_INFINITY;
    if (!damaged && this.#now() > kept + READ_MS) this.broken('a delivered answer after its time');
    if (late && !damaged && (secret === undefined || !secrets.includes(secret)))
      this.broken('a delivered answer once more to a call without its secret');
    const handed = this.#handed.get(payId) ?? new Set();
    this.#handed.set(payId, handed.add(body));
    if (handed.size > 1 && !damaged) this.broken('two purchases answered for one payment');
  }

  /** A record was written. */
  changed({ payId, before, after, receipt }: Change, damaged: boolean): void {
    if (after === undefined) {
      if (before !== undefined && before.state !== 'reserved') this.broken(`a record in ${before.state} was deleted`);
      return;
    }
    if (before !== undefined) this.#moved(before, after, payId, damaged);
    else if (after.state !== 'reserved' && (after.state !== 'settling' || this.#settle === 'after'))
      this.broken(`a record begins as ${after.state}`);
    const paid = this.#chain.paid(this.nonceOf(payId));
    if (PAID.has(after.state) && !paid) this.broken(`${after.state}, and the chain shows no payment`);
    if (after.state === 'refused' && paid) this.broken('refused, and the chain shows a payment');
    if (!damaged) this.#agrees(after, receipt);
  }

  /** The uses of a mandate are those of its payments, and each payment has a mandate of its own. */
  mandates(store: SimStore): void {
    const wrong = wrongUses(store);
    if (wrong !== undefined) this.broken(wrong);
  }

  /** After the run. */
  final(): void {
    for (const nonce of this.#challenged)
      if (this.#chain.paid(nonce)) this.broken('402 for an authorization that paid afterwards');
    for (const count of this.#chain.transfers.values()) if (count > 1) this.broken('a nonce moved money twice');
  }

  #moved(before: HeldRecord, after: HeldRecord, payId: string, damaged: boolean): void {
    const { state } = after;
    const step = `${before.state} -> ${state}`;
    if (before.state !== state && !TRANSITIONS[before.state].includes(state)) this.broken(`illegal: ${step}`);
    if (before.owner !== after.owner && before.leaseUntil > Math.floor(this.#now()))
      this.broken(`a live lease was taken: ${step}`);
    if (after.fence < before.fence) this.broken(`the fence fell: ${step}`);
    if (before.bind !== after.bind) this.broken('a record changed what it bought');
    if (state === 'delivered' && !this.handedOut(payId) && !damaged)
      this.broken('delivered, and nothing was handed out');
  }

  #agrees({ state, payId, transaction }: HeldRecord, receipt: Receipt | undefined): void {
    if (!PAID.has(state)) {
      if (receipt !== undefined) this.broken(`a receipt for a payment that is ${state}`);
      return;
    }
    if (receipt === undefined) {
      this.broken(`no receipt for a payment that is ${state}`);
      return;
    }
    const { delivered, payment, metadata } = receipt;
    if (delivered !== (state === 'delivered')) this.broken(`the receipt of ${state} has delivered: ${delivered}`);
    if ((metadata?.refundDue === true) !== (state === 'refundDue'))
      this.broken(`the receipt of ${state} and refundDue`);
    if (payment?.replayKey !== payId || payment.externalReference !== (transaction ?? ''))
      this.broken(`the receipt of ${state} names another payment`);
  }
}

/** What must be true once a run is quiet; each compares the ledgers of chain, store and backend. */
export const judge = { quiet, buyers, end, undecidable };

/**
 * No faults any more, all leases and authorizations are over: no payment may be undecided, no
 * reservation left.
 */
function quiet(world: World): void {
  for (const record of world.store.records.values()) {
    if (isUnknowable(world, record)) continue;
    const { state } = record;
    if (state === 'reserved' || state === 'worked' || state === 'settling' || state === 'settled')
      world.laws.broken(`left open as ${state}`);
  }
}

/**
 * Whether a payment can never be decided: the reconciler asks about it for ever, so a run cannot
 * wait for its end.
 */
function undecidable(world: World): boolean {
  return [...world.store.records.values()].some((record) => isUnknowable(world, record));
}

/** Without a chain nothing shows what became of an authorization that no facilitator claims. */
function isUnknowable({ setting }: World, { state }: Pick<HeldRecord, 'state'>): boolean {
  return setting.rail === 'blind' && state === 'settling';
}

/** After the late retries every buyer that paid has the answer, or the reason why not. */
function buyers(world: World, all: readonly BuyerPlan[], endings: readonly Ending[]): void {
  const { chain, laws, setting, store } = world;
  all.forEach((buyer, index) => {
    const ending = endings[index] ?? 'open';
    if (!buyer.mayPay || ending === 'answered') return;
    const paid = buyer.purchase.proofs.filter(({ nonce }) => chain.paid(nonce));
    const verdict = `${buyer.name} ends ${ending}, having paid ${paid.length} times`;
    switch (ending) {
      case 'delivered':
        if (!paid.some(({ payId }) => laws.handedOut(payId))) laws.broken(`${verdict}; nothing was handed out`);
        return;
      case 'undelivered':
        // Bytes of its answers may have left as often as any may.
        if (paid.some(({ payId }) => (store.records.get(payId)?.sendings ?? 0) >= MOST_SENDINGS)) return;
        if (setting.method === 'GET' && !othersPaid(all, buyer)) laws.broken(`${verdict}; it can be repeated`);
        return;
      case 'used':
      case 'conflict':
        if (!othersPaid(all, buyer)) laws.broken(verdict);
        return;
      case 'open': {
        const { proof } = buyer.purchase;
        const record = store.records.get(proof.payId);
        if (record !== undefined && isUnknowable(world, record)) return;
        const guarded = record?.keyDigest !== undefined && buyer.key === undefined;
        if (!guarded) laws.broken(verdict);
        return;
      }
      default:
        laws.broken(verdict);
    }
  });
}

/** Whether another buyer sent the same proof, with another input or another key. */
function othersPaid(all: readonly BuyerPlan[], buyer: BuyerPlan): boolean {
  return all.some(
    ({ purchase, input, key }) => purchase === buyer.purchase && (input !== buyer.input || key !== buyer.key),
  );
}

/** A day later: nothing is open, and the three ledgers agree. */
function end(world: World, purchases: readonly Purchase[]): void {
  const { chain, laws, store } = world;
  for (const record of store.records.values())
    if (!isFinal(record.state) && !undecidable(world)) laws.broken(`open after a day: ${record.state}`);
  for (const { proofs } of purchases) {
    const paid = proofs.filter(({ nonce }) => chain.paid(nonce));
    const counted = paid.filter(({ nonce }) => !laws.excused.has(nonce));
    if (counted.length > 1) laws.broken(`one call paid ${counted.length} times`);
    for (const { payId } of paid) agree(world, payId);
  }
  const loose = world.flushed.filter(({ type }) => type === 'payment.settled');
  if (loose.length > 0) laws.broken('payment.settled written outside of its transition');
  countRequests(world);
  laws.final();
}

/**
 * Every request has one event, unless its process died; a silent store may have written one that is
 * then written again.
 */
function countRequests({ flushed, laws, served, store }: World): void {
  if (store.damaged.size > 0 || served.some(({ storeFaults }) => storeFaults > 0)) return;
  const times = new Map<string, number>();
  for (const { type, requestId } of [...flushed, ...store.events()])
    if (type === 'resource.requested') times.set(requestId, (times.get(requestId) ?? 0) + 1);
  served.forEach(({ alive }, index) => {
    const count = times.get(requestIdOf(index)) ?? 0;
    if (count > 1 || (alive && count === 0)) laws.broken(`${count} events for request ${index}`);
  });
}

function agree(world: World, payId: string): void {
  const { laws, setting, store } = world;
  const record = store.records.get(payId);
  const { requests, executions } = world.workOf(payId);
  if (setting.honoursKeys && executions > 1) laws.broken(`the backend did the work ${executions} times`);
  const bought = world.answerBought(payId);
  if (record?.state === 'delivered' && executions === 0 && !bought)
    laws.broken('delivered, and the backend did nothing');
  // What the store lost may be sent again, with a second event: the gateway accepts that, so that
  // it does not charge again.
  if (store.damaged.has(payId)) return;
  if (record === undefined) {
    laws.broken('paid, and there is no record');
    return;
  }
  if (isUnknowable(world, record)) return;
  if (setting.settle === 'after' && record.recovered === undefined && executions === 0 && !bought)
    laws.broken('paid for an answer that the backend did not give');
  // Before the money moves a request may be repeated: its operation does no harm unpaid.
  if (setting.method === 'POST' && setting.settle === 'before' && requests > 1)
    laws.broken(`a request that must not be repeated was sent ${requests} times`);
  const count = store.events(payId).filter(({ type }) => type === 'payment.settled').length;
  if (count !== 1) laws.broken(`${count} events payment.settled`);
}
