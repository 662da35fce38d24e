/** What must hold at every moment of a simulated run. */

import type { PaymentState } from '../../../src/payments/ledger/ledger.ts';
import { TRANSITIONS } from '../../../src/payments/ledger/transitions.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import type { SimChain } from './chain.ts';
import { wrongUses } from './mandate.ts';
import { KEEP_ANSWER_MS, LEAST_SECONDS } from './proof.ts';
import type { Setting } from './setting.ts';
import type { Change, HeldRecord, SimStore } from './store.ts';

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
