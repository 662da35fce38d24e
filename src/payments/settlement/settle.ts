/**
 * One attempt to settle a payment, from claim to outcome: contract 4.2, steps 6 to 9, and the table
 * of 4.3, over a ledger and a rail. An attempt verifies a proof that is new to this process before
 * anything is written, and claims it as `settling`; where it cannot, it reserves first. Each step
 * that can move money comes after the write that lets another process find it. For a payment that
 * is settled after its call (4.7) the backend's answer is kept before the money moves. Copies of
 * one proof that come to one process wait for the first.
 */

import { type HeldConnection, type Sale, statusClass, wireReason } from '../../backend/backend-exchange.ts';
import { newId } from '../../events/event.ts';
import { Counts, type Limiter } from '../../limiter.ts';
import { RecentMap } from '../../time/recent-map.ts';
import { REAL_TIME, type Time } from '../../time/time.ts';
import type {
  KeptAnswer,
  PaymentFacts,
  PaymentLedger,
  PaymentRecord,
  PaymentTerms,
  Reservation,
  Reserve,
} from '../ledger/ledger.ts';
import { ANSWER_KEPT } from '../ledger/payment-receipt.ts';
import { isFinal } from '../ledger/table.ts';
import type { RailVerdict, Settled, Settlement, SettlementHistory } from '../rail.ts';
import { tooLate, type WindowReason } from '../x402/wire/proof.ts';
import { NONCE_ALREADY_USED } from '../x402/wire/reasons.ts';
import {
  fencingToken,
  LEASE_MS,
  type Leases,
  LONGEST_LEASE_MS,
  passed,
  reservingOver,
  windowEndMs,
} from './attempt.ts';
import {
  answerExisting,
  CLOCK_GRAIN_MS,
  claimOfLost,
  isUnderOtherMandate,
  type PayeeParts,
  rememberedRefusal,
  resumeDelivery,
} from './existing-payment.ts';
import { failedWork, limitSettlements, type Place, type UnpaidWork } from './places.ts';
import { SafeToRechallenge } from './safe-to-rechallenge.ts';
import {
  NEVER_ANEW,
  type SettlementRequest,
  type SettlementResult,
  SOLD_OTHERWISE,
  type StepResult,
  type Uncertain,
  type Worked,
  type WorkFirst,
} from './settlement-request.ts';
import {
  type AttemptContext,
  beginSettling,
  claimVerified,
  isBegun,
  leaveUncertain,
  orUncertain,
  recordOutcome,
  writeAhead,
  writeWorked,
} from './settlement-writes.ts';
import { readForChain, readStoredProof, type StoredPurchase, UNREADABLE, unreadable } from './terms.ts';

/**
 * Above the sum of a settlement's deadlines without the backend's, milliseconds: chain 3 s, budget
 * of unpaid work 6 s, slot 3 s, verify 6.5 s, settle 60 s, the slowest reader 130 s.
 */
const SETTLEMENT_BOUND_MS = 211_000;

const TOO_LATE_TO_BEGIN: WindowReason = 'invalid_exact_evm_payload_authorization_valid_before';
/** Refusals of a new call of the backend; a payment for an answer that is there ignores them. */
const AGAINST_NEW_WORK: ReadonlySet<string | undefined> = new Set([SOLD_OTHERWISE, TOO_LATE_TO_BEGIN]);

/** Most proofs that are remembered: a remembered one is reserved before it is verified. */
const REMEMBERED = 10_000;

const CROWDED = { kind: 'crowded' } as const;
const NOT_REACHED = {
  kind: 'postponed',
  reason: 'backend_unreachable',
  cause: 'no connection to the merchant',
} as const;

/** The reason of work whose answer the store did not confirm to have. */
export const UNKEPT = 'storage_error';

/**
 * Work that was not paid for. `reason`: as a 402 states it, or why there was nothing to pay:
 * `storage_error`, or how the backend failed.
 */
export interface UnpaidAnswer extends Pick<PaymentRecord, 'payId' | 'resourceId' | 'payer'> {
  readonly reason: string;
}

/** What a settlement works with. */
export interface SettlementParts extends PayeeParts {
  readonly ledger: PaymentLedger;
  readonly leases: Pick<Leases, 'hold'>;
  /** The budget of calls that are settled after the backend answered. */
  readonly unpaidWork: Pick<UnpaidWork, 'enter' | 'paid'>;
  readonly time?: Time;
  /** Gets each answer of the backend that is certainly not paid for. */
  readonly onUnpaid?: (facts: UnpaidAnswer) => void;
}

/** Settles payments. */
export interface Settler {
  /**
   * One attempt. `joined`: this call waited for another one with the same authorization, so it may
   * have the answer of that one.
   * @throws what the ledger throws, but only while this call can have moved no money
   */
  settle(request: SettlementRequest, joined?: boolean): Promise<SettlementResult>;
}

export function createSettler(parts: SettlementParts): Settler {
  const shared: Shared = {
    slots: slotsByNetwork(parts.time),
    seen: new RecentMap(REMEMBERED),
    claiming: new Set(),
    reserve: reservingOver(parts.ledger, parts.time),
  };
  return { settle: (request, joined = false) => new SettlementAttempt(parts, shared, request).run(joined) };
}

/** Settlements of one network take no place of another: its provider may hang. */
function slotsByNetwork(time: Time | undefined): (network: string) => Limiter {
  const slots = new Map<string, Limiter>();
  return (network) => {
    const own = slots.get(network) ?? limitSettlements(time);
    slots.set(network, own);
    return own;
  };
}

/** The parts that all attempts of a process share. */
interface Shared {
  readonly slots: (network: string) => Limiter;
  /** By payId: proofs that this process has begun to verify before their claim. */
  readonly seen: RecentMap<true>;
  /** By payId: proofs whose claim or reservation is not written yet. */
  readonly claiming: Set<string>;
  readonly reserve: PaymentLedger['reserve'];
}

/** One request to settle: what its steps share. */
class SettlementAttempt {
  readonly #parts: SettlementParts;
  readonly #shared: Shared;
  readonly #context: AttemptContext;
  readonly #request: SettlementRequest;
  #held: HeldConnection | undefined;
  /** The stored proof as read last: verification and settlement read the same one. */
  #purchase: { readonly stored: string; readonly read: StoredPurchase } | undefined;
  /** The rail's verdict on a proof that was verified before its record was asked for. */
  #verdict: RailVerdict | undefined;
  /** The backend's answer, where this attempt has it before the settlement. */
  #answer: KeptAnswer | undefined;
  /** payId of the earlier payment that `#answer` was made for, and that came to nothing. */
  #bought: string | undefined;
  /** The work of the backend in this attempt, for the budget. `reason`: why nothing can be sold. */
  #worked: { readonly status: number; readonly reason?: string } | undefined;

  /** Copies the parts: settings that change later stay the same for the attempt. */
  constructor(parts: SettlementParts, shared: Shared, request: SettlementRequest) {
    this.#parts = { ...parts };
    this.#shared = shared;
    this.#request = request;
    this.#context = { ledger: parts.ledger, time: parts.time ?? REAL_TIME, request };
  }

  async run(joined: boolean): Promise<SettlementResult> {
    if (!this.#request.gateOpen()) return { kind: 'gate_closed' };
    if (this.#request.left?.aborted === true) return { kind: 'gone' };
    // Read before the store is asked: the wait for its reply is no wait for an answer.
    const waitedMs = this.#request.elapsedMs();
    const { terms, proof, token, work } = this.#request;
    const asked = {
      terms,
      owner: newId(),
      leaseMs: LEASE_MS,
      longestMs: LONGEST_LEASE_MS,
      ...(proof === undefined ? {} : { proof }),
      ...(token === undefined ? {} : { token }),
    };
    const reservation = await this.#claimedOrReserved(asked);
    if ('result' in reservation) return reservation.result;
    if (reservation.kind !== 'granted') {
      this.#held?.release();
      return answerExisting(this.#parts.ledger, reservation, terms, { joined, waitedMs, answerOf: work?.answerOf });
    }
    const { record } = reservation;
    passed('reserved', record.payId);
    return this.#holding(record, () => this.#work(record, joined));
  }

  /** Runs the work on a record under its lease. A paid record keeps it for its delivery. */
  async #holding(record: PaymentRecord, work: () => Promise<StepResult>): Promise<SettlementResult> {
    const lease = this.#parts.leases.hold(record, SETTLEMENT_BOUND_MS + this.#request.backendTimeoutMs);
    let result: StepResult | undefined;
    try {
      result = await this.#withAnswer(await work());
    } finally {
      if (result?.kind !== 'paid') {
        lease.drop();
        this.#held?.release();
      }
    }
    return result.kind === 'paid' ? { ...result, lease, held: this.#held } : result;
  }

  /**
   * Verifies the proof, claims the payment and settles it, where this process sees the proof for
   * the first time and a slot is free. Otherwise, and where the rail does not accept the proof, it
   * reserves a record. Until a claim or a reservation is written, copies are "in flight": a copy
   * that reserves could pay for a proof that is refused here.
   */
  async #claimedOrReserved(asked: Reserve): Promise<Reservation | { readonly result: SettlementResult }> {
    const { payId, payer, network, mandate } = asked.terms;
    const { seen, claiming, slots, reserve } = this.#shared;
    if (claiming.has(payId)) return { result: { kind: 'in_flight' } };
    const { work, refusal, left } = this.#request;
    // The use of a mandate is reserved before the rail is asked: one mandate may come with a
    // hundred proofs.
    const isPlain = work === undefined && mandate === undefined && refusal === undefined && left !== undefined;
    if (!isPlain || seen.use(payId) === true) return reserve(asked);
    seen.add(payId, true);
    claiming.add(payId);
    try {
      return (
        (await slots(network).atOnce(payer.toLowerCase(), () => this.#verifyAndClaim(asked))) ?? (await reserve(asked))
      );
    } finally {
      claiming.delete(payId);
    }
  }

  /** Undefined: the rail's verdict is not `valid`. A reservation: no settlement began. */
  async #verifyAndClaim(asked: Reserve): Promise<Reservation | { readonly result: SettlementResult } | undefined> {
    const { proof, requirements } = this.#readProof(asked.terms);
    this.#verdict = await this.#parts.rail.verify(proof, requirements);
    // A refusal of the rail is answered under a reservation.
    if (this.#verdict.kind !== 'valid') return undefined;
    passed('verified', asked.terms.payId);
    const against = await this.#againstBeginning(asked.terms);
    if (against !== undefined) {
      this.#held?.release();
      return { result: against };
    }
    let reservation: Reservation | Uncertain | undefined;
    try {
      reservation = await claimVerified(this.#context, asked);
    } finally {
      this.#shared.claiming.delete(asked.terms.payId);
      if (reservation === undefined || reservation.kind === 'uncertain') this.#held?.release();
    }
    if (reservation.kind === 'uncertain') return { result: reservation };
    if (!isBegun(reservation)) return reservation;
    const { record } = reservation;
    passed('settling', record.payId);
    return {
      result: await this.#holding(record, () => orUncertain(this.#context, record, () => this.#settle(record, false))),
    };
  }

  /** Holds the backend, and gives the reason if a verified proof may not be settled now. */
  async #againstBeginning(sale: Sale): Promise<Exclude<StepResult, { readonly kind: 'paid' }> | undefined> {
    if (this.#answer === undefined && !(await this.#holdsBackend(sale))) return NOT_REACHED;
    // The gate may have closed during the verification. After the next write another process may
    // settle the payment.
    if (!this.#request.gateOpen()) return { kind: 'gate_closed' };
    return this.#buyerIsHere() ? undefined : { kind: 'gone' };
  }

  /**
   * Adds to a paid result the answer that came before the money moved. Without it the backend is
   * called again, if it may be; else the payment waits for its buyer.
   */
  async #withAnswer(result: StepResult): Promise<StepResult> {
    if (result.kind !== 'paid' || result.kept !== undefined || result.record.answered === undefined) return result;
    const { record } = result;
    this.#parts.unpaidWork.paid(record.payId);
    if (this.#bought !== undefined) this.#parts.unpaidWork.paid(this.#bought);
    const kept = this.#answer ?? (await this.#parts.ledger.kept(record.payId).catch(() => undefined));
    if (kept !== undefined || this.#request.repeatable || record.reason !== ANSWER_KEPT) return { ...result, kept };
    await this.#parts.ledger.note({ ...fencingToken(record), leaseMs: 0 }).catch(() => undefined);
    return { kind: 'failed', record, retryable: true };
  }

  async #work(record: PaymentRecord, joined: boolean): Promise<StepResult> {
    switch (record.state) {
      case 'reserved': {
        const { work } = this.#request;
        // Left by a call that accepted another order of work and money than this one.
        if ((record.settle === 'after') !== (work !== undefined)) return this.#giveUp(record, { kind: 'in_flight' });
        if (work !== undefined) return this.#workFirst(record, work);
        // Copies that wait for this one and answers that exist need no slot.
        return (await this.#inSlot(record, () => this.#begin(record))) ?? this.#giveUp(record, CROWDED);
      }
      case 'worked':
        return this.#payForWork(record);
      case 'withdrawn':
        return (await this.#inSlot(record, () => this.#beginAnew(record))) ?? this.#putBack(record, CROWDED);
      case 'settling':
        return orUncertain(this.#context, record, () => this.#resolve(record));
      default:
        return resumeDelivery(this.#context, record, joined);
    }
  }

  #readProof(terms: PaymentTerms): StoredPurchase {
    const { proof: stored } = terms;
    if (this.#purchase?.stored !== stored) this.#purchase = { stored, read: readStoredProof(terms) };
    return this.#purchase.read;
  }

  /** Runs a step in a slot of the payer. Undefined: there is none for it. */
  #inSlot(record: PaymentRecord, step: () => Promise<StepResult>): Promise<StepResult | undefined> {
    return this.#shared.slots(record.network).within(record.payer.toLowerCase(), step);
  }

  /** `against`: the reason for which no call may be worked for now. */
  #begin(record: PaymentRecord, against?: string): Promise<StepResult> {
    if (unreadable(record)) return this.#giveUp(record, { kind: 'unavailable', cause: UNREADABLE });
    // A verdict that exists is used without its buyer: it answers the copies too.
    if (this.#verdict === undefined && !this.#buyerIsHere()) return this.#giveUp(record, { kind: 'gone' });
    if (isUnderOtherMandate(record, this.#request.terms)) return this.#giveUp(record, { kind: 'in_flight' });
    // A faulty proof comes here when a record had to answer it, and that record is gone or the
    // store may have lost it.
    const refusal = this.#request.refusal ?? against ?? tooLate(record, this.#request.work?.leastSeconds);
    if (refusal === NEVER_ANEW) return this.#refuse(record, refusal, false);
    return refusal === undefined ? this.#verify(record) : this.#checkStoreLoss(record, refusal, 'late');
  }

  /** Asks the rail. A refusal leaves no record: nothing was sent, the buyer may sign again. */
  async #verify(record: PaymentRecord): Promise<StepResult> {
    const { proof, requirements } = this.#readProof(record);
    // A record that was taken over may have another signature than this call.
    const known = record.fence === 1 ? this.#verdict : undefined;
    const verdict = known ?? (await this.#parts.rail.verify(proof, requirements));
    if (verdict.kind === 'unavailable') return this.#giveUp(record, verdict);
    if (verdict.kind === 'unfunded') return this.#giveUp(record, unfunded(verdict));
    if (verdict.kind === 'refused' && verdict.nonceSpent) return this.#checkStoreLoss(record, verdict.reason, 'spent');
    if (verdict.kind === 'refused') return this.#refuse(record, verdict.reason, true);
    passed('verified', record.payId);
    const against = await this.#againstBeginning(record);
    if (against !== undefined) return this.#giveUp(record, against);
    if (record.settle === 'after') return this.#haveItWorked(record);
    return this.#pay(record, { verified: true });
  }

  /** Writes that the settlement begins, and sends it. */
  #pay(record: PaymentRecord, begun: { readonly verified?: true; readonly answer?: KeptAnswer }): Promise<StepResult> {
    return beginSettling(this.#context, record, begun, (settling) => this.#settle(settling, false));
  }

  /** Settles after the call: takes a place in the budget of unpaid work, and a slot to pay. */
  async #workFirst(record: PaymentRecord, { network, answerOf }: WorkFirst): Promise<StepResult> {
    this.#answer = await this.#answerOfEarlier(record, answerOf);
    // An answer that is there needs no place and no backend.
    if (this.#answer !== undefined) return this.#begin(record);
    const { payId, payer, resourceId } = record;
    const atMostMs = SETTLEMENT_BOUND_MS + this.#request.backendTimeoutMs;
    const place = await this.#parts.unpaidWork.enter({ payId, payer, resourceId, network, atMostMs });
    if (place === 'crowded') return this.#giveUp(record, CROWDED);
    if (place === 'exhausted') {
      const refused = await this.#inSlot(record, () => this.#begin(record, SOLD_OTHERWISE));
      return refused ?? this.#giveUp(record, CROWDED);
    }
    let result: StepResult | undefined;
    try {
      result = await this.#begin(record);
    } finally {
      place.leave(result?.kind === 'paid' ? 'settled' : this.#costOf(record, result));
    }
    return result;
  }

  /** Decides how an unpaid call leaves its place: as `settled` if the backend did no work. */
  #costOf(record: PaymentRecord, result: StepResult | undefined): Parameters<Place['leave']>[0] {
    if (this.#worked === undefined) return 'settled';
    const { status, reason = result === undefined ? UNKEPT : undefined } = this.#worked;
    return reason === undefined ? 'unpaid' : failedWork(record, status, reason);
  }

  /**
   * Gets and keeps the backend's answer for a verified proof, and then settles. Where nothing is in
   * the way, one write keeps the answer and begins the settlement; otherwise the answer is kept
   * before any wait.
   */
  async #haveItWorked(record: PaymentRecord): Promise<StepResult> {
    this.#request.journal.record('payment.verified', { status: 'ok', paymentProvider: 'x402' });
    if (this.#answer === undefined) {
      const worked = await this.#call(record);
      if (worked.kind === 'failed') return this.#giveUp(record, { kind: 'unworked', failure: worked.failure });
      this.#answer = worked.answer;
    }
    const answer = this.#answer;
    const unkept = (cause: unknown): never => {
      if (this.#worked) this.#workedInVain(record, UNKEPT);
      throw cause;
    };
    const paying = this.#isWanted()
      ? this.#shared.slots(record.network).atOnce(record.payer.toLowerCase(), () => this.#pay(record, { answer }))
      : undefined;
    if (paying !== undefined) return paying.catch(unkept);
    const kept = await writeWorked(this.#context, record, answer).catch(unkept);
    return kept === undefined ? { kind: 'in_flight' } : this.#payForWork(kept, true);
  }

  /**
   * The answer of a refused payment for the same purchase of the same payer. The first payment that
   * asks gets it. If that one is refused too, the next gets it; if it leaves no record, the answer
   * is free again.
   */
  async #answerOfEarlier(record: PaymentRecord, payId: string | undefined): Promise<KeptAnswer | undefined> {
    if (payId === undefined) return undefined;
    const earlier = await this.#parts.ledger.read(payId);
    if (earlier?.state !== 'refused' || earlier.bind !== record.bind || earlier.payer !== record.payer)
      return undefined;
    const { bought = record.payId } = earlier;
    if (bought !== record.payId && (await this.#parts.ledger.read(bought)) !== undefined)
      return this.#answerOfEarlier(record, bought);
    const kept = await this.#parts.ledger.kept(payId);
    if (kept === undefined) return undefined;
    const facts = { bought: record.payId };
    const noted = await this.#parts.ledger.note({ ...fencingToken(earlier), unchanged: true, leaseMs: 0, facts });
    if (noted.kind !== 'done') return undefined;
    this.#bought = payId;
    return kept;
  }

  /** Calls the backend over the connection that was held for it. */
  async #call(record: PaymentRecord): Promise<Worked> {
    const [held, { work }] = [this.#held, this.#request];
    this.#held = undefined;
    if (held === undefined || work === undefined) throw new Error('a call without connection or request');
    passed('working', record.payId);
    const worked = await work.call(record, held);
    if (worked.kind === 'answer') this.#worked = { status: worked.answer.status };
    else if (worked.failure.requestWritten) {
      const { status } = worked.failure;
      const reason = wireReason(worked.failure.reason ?? statusClass(status));
      this.#worked = { status, reason };
      this.#workedInVain(record, reason);
    }
    return worked;
  }

  /**
   * Pays for a kept answer; no transaction was sent before. Without its buyer nothing is paid, and
   * a record that an earlier attempt left (not `fresh`) is verified again.
   */
  async #payForWork(record: PaymentRecord, fresh = false): Promise<StepResult> {
    const otherwise = (await this.#unwanted(record)) ?? (fresh ? undefined : await this.#againstPaying(record));
    if (otherwise !== undefined) return otherwise;
    const paid = await this.#inSlot(record, async () => (await this.#unwanted(record)) ?? this.#pay(record, {}));
    return paid ?? this.#putBack(record, CROWDED);
  }

  /** Nothing is paid without its buyer, or by a gateway that closes. Undefined: it may be paid. */
  async #unwanted(record: PaymentRecord): Promise<StepResult | undefined> {
    if (this.#request.left === undefined) return this.#endWork(record, { kind: 'gone' });
    if (!this.#buyerIsHere()) return this.#putBack(record, { kind: 'gone' });
    if (!this.#request.gateOpen()) return this.#putBack(record, { kind: 'gate_closed' });
    return undefined;
  }

  /** Puts back or ends a record that cannot be paid now; undefined: it can be paid. */
  async #againstPaying(record: PaymentRecord): Promise<StepResult | undefined> {
    if (isUnderOtherMandate(record, this.#request.terms)) return this.#putBack(record, { kind: 'in_flight' });
    const notNow = (cause: string): Promise<StepResult> => this.#putBack(record, { kind: 'unavailable', cause });
    if (unreadable(record)) return notNow(UNREADABLE);
    if (endOf(record) !== undefined) return this.#endWork(record, { kind: 'unavailable', cause: 'past its window' });
    const refusal = this.#refusalOf(record);
    if (refusal !== undefined) return notNow(refusal);
    this.#answer = await this.#parts.ledger.kept(record.payId);
    if (this.#answer === undefined && !this.#request.repeatable) return notNow('its answer cannot be had');
    const { proof, requirements } = readStoredProof(record);
    const verdict = await this.#parts.rail.verify(proof, requirements);
    switch (verdict.kind) {
      case 'valid':
        return undefined;
      case 'unfunded':
        return this.#putBack(record, unfunded(verdict));
      case 'unavailable':
        return this.#putBack(record, verdict);
      case 'refused':
        if (verdict.nonceSpent) return this.#endWork(record, { kind: 'spent', state: 'used' });
        return this.#recordOutcome(record, { kind: 'refused', reason: verdict.reason, evidence: 'unsent' });
    }
  }

  /**
   * Leaves the answer to its buyer, unless the payment is decided: by the end of its window, or by
   * a chain that shows a payment which a store that lost its last seconds has forgotten.
   */
  async #endWork(record: PaymentRecord, otherwise: StepResult): Promise<StepResult> {
    const ended = endOf(record);
    const { proof, requirements } = readForChain(record);
    if (!this.#parts.rail.seesChain(requirements))
      return ended === undefined
        ? this.#putBack(record, otherwise)
        : this.#recordOutcome(record, { kind: 'refused', reason: ended, evidence: 'unsent' });
    const shown = await this.#parts.rail.reconcile(proof, requirements, this.#historyOf(record, false));
    if (shown.kind === 'refused') return this.#recordOutcome(record, shown);
    if (shown.kind !== 'settled') return this.#putBack(record, otherwise);
    return beginSettling(this.#context, record, {}, (settling) => this.#recordOutcome(settling, shown));
  }

  /** Writes an outcome. An answer that is certainly not paid for is reported, once. */
  async #recordOutcome(
    record: PaymentRecord,
    settlement: Settlement,
    facts?: Pick<PaymentFacts, 'recovered' | 'tokenDigest'>,
  ): Promise<StepResult> {
    const outcome = settlement.kind === 'settled' ? this.#claimed(record, settlement) : settlement;
    const result = await recordOutcome(this.#context, record, outcome, facts);
    const unclaimed = result.kind === 'spent';
    if (unclaimed) this.#parts.onUnclaimed?.({ payId: record.payId, transaction: settlement.transaction });
    if ((unclaimed || result.kind === 'refused') && record.answered !== undefined && this.#bought === undefined)
      this.#workedInVain(record, unclaimed ? NONCE_ALREADY_USED : result.owed.reason);
    return result;
  }

  /** Judges a payment where others may be paid to the same payee. */
  #claimed(record: PaymentRecord, paid: Settled): Settlement {
    const { by, transaction } = paid;
    if (by === undefined || this.#parts.payeeRules(record).payToExclusive) return paid;
    if (by === 'others') return { kind: 'refused', reason: NONCE_ALREADY_USED, evidence: 'unclaimed', transaction };
    // The result has no hash: a later attempt would take it for a transaction of this store.
    return { kind: 'uncertain', cause: `paid by ${transaction}, which this store is not known to have caused` };
  }

  /**
   * The earlier attempts, as the rail needs them. The payment's mark on the chain is the digest of
   * a random token and never of a key, which could be guessed from it.
   */
  #historyOf({ transaction, keyDigest, tokenDigest }: PaymentRecord, sentBefore: boolean): SettlementHistory {
    const { terms, token } = this.#request;
    const mark = tokenDigest ?? (keyDigest !== undefined && token?.kind === 'issued' ? terms.tokenDigest : undefined);
    return { sentBefore, transaction, ...(mark === undefined ? {} : { mark }) };
  }

  #workedInVain({ payId, resourceId, payer }: PaymentRecord, reason: string): void {
    this.#parts.onUnpaid?.({ payId, resourceId, payer, reason });
  }

  /**
   * Begins a withdrawn payment anew when the same proof comes again. A node may hold the
   * transaction although it refused it, so the chain is asked first, and only the chain can lead to
   * a 402.
   */
  async #beginAnew(record: PaymentRecord): Promise<StepResult> {
    const request = this.#request;
    if (isUnderOtherMandate(record, request.terms)) return this.#putBack(record, { kind: 'in_flight' });
    const { proof, requirements } = readForChain(record);
    const shown = await this.#parts.rail.reconcile(proof, requirements, this.#historyOf(record, false));
    if (shown.kind === 'unknown') return this.#putBack(record, { kind: 'unavailable', cause: shown.cause });
    if (shown.kind !== 'open')
      return beginSettling(this.#context, record, {}, (settling) => this.#recordOutcome(settling, shown));
    const notBegun = (why: string): Promise<StepResult> =>
      this.#putBack(record, { kind: 'unavailable', cause: `withdrawn, and not begun anew: ${why}` });
    if (!this.#buyerIsHere()) return notBegun('no buyer asks for it');
    const refusal = unreadable(record) ?? this.#refusalOf(record) ?? endOf(record);
    if (refusal !== undefined) return notBegun(refusal);
    const verdict = await this.#parts.rail.verify(proof, requirements);
    if (verdict.kind === 'unfunded') return this.#putBack(record, unfunded(verdict));
    if (verdict.kind === 'refused') return notBegun(verdict.reason);
    if (verdict.kind === 'unavailable') return notBegun(verdict.cause);
    if (record.answered === undefined && !(await this.#holdsBackend(record))) return this.#putBack(record, NOT_REACHED);
    if (!request.gateOpen()) return this.#putBack(record, { kind: 'gate_closed' });
    if (!this.#buyerIsHere()) return this.#putBack(record, { kind: 'gone' });
    return beginSettling(this.#context, record, { verified: true }, (settling) =>
      this.#settle(settling, false, { withdrawnBefore: true }),
    );
  }

  /**
   * The refusal of the checks. A record with an answer ignores refusals of new work: its stored
   * proof pays under its accepted terms.
   */
  #refusalOf({ answered }: PaymentRecord): string | undefined {
    const { refusal } = this.#request;
    return answered !== undefined && AGAINST_NEW_WORK.has(refusal) ? undefined : refusal;
  }

  /** Leaves a payment that is not under way to its buyer, and past its window to the reconciler. */
  async #putBack(record: PaymentRecord, result: StepResult): Promise<StepResult> {
    const noted = await this.#parts.ledger.note({ ...fencingToken(record), leaseMs: 0, againMs: windowEndMs(record) });
    return noted.kind === 'done' ? result : { kind: 'in_flight' };
  }

  /** Holds a connection to the backend before money may move. False: nothing may be paid. */
  async #holdsBackend(sale: Sale): Promise<boolean> {
    this.#held ??= await this.#request.reserveBackend(sale);
    return this.#held !== undefined;
  }

  /** Whether its buyer waits for it, and this gateway may begin to settle. */
  #isWanted(): boolean {
    return this.#buyerIsHere() && this.#request.gateOpen();
  }

  /** Whether the client waits. Without it no money moves: after a refused copy it may pay anew. */
  #buyerIsHere(): boolean {
    return this.#request.left?.aborted === false;
  }

  /**
   * Deletes the reservation. `remember`: a copy that is verified already finds the refusal and is
   * not settled, because the buyer is asked to pay anew. An attempt that lost the reservation to
   * another one answers "in flight".
   */
  async #refuse(record: PaymentRecord, reason: string, remember: boolean): Promise<StepResult> {
    const remembered = remember ? rememberedRefusal(this.#request, record, reason) : undefined;
    const discarded = await this.#parts.ledger.discard(fencingToken(record), [], remembered);
    if (discarded.kind !== 'gone') return { kind: 'in_flight' };
    // An answer that this proof was to buy waits for the next proof.
    return { kind: 'refused', owed: SafeToRechallenge.discarded(discarded, reason, this.#bought) };
  }

  /** Deletes the reservation, and nothing is owed for it. */
  async #giveUp(record: PaymentRecord, result: StepResult): Promise<StepResult> {
    const discarded = await this.#parts.ledger.discard(fencingToken(record), []);
    return discarded.kind === 'gone' ? result : { kind: 'in_flight' };
  }

  /**
   * There was no record, and yet the nonce is spent, or the proof is too old to be a new one: it
   * may have paid us before the store lost its data. Only the chain shows that; a 402 for a proof
   * that paid would charge twice.
   */
  async #checkStoreLoss(record: PaymentRecord, reason: string, why: 'spent' | 'late'): Promise<StepResult> {
    // A fault of a mandate is not remembered, nor a late proof of a call that is settled after it:
    // each copy reserves first and finds that itself.
    const remember = why === 'spent' || (this.#request.work === undefined && AGAINST_NEW_WORK.has(reason));
    const { proof, requirements } = readStoredProof(record);
    if (!this.#parts.rail.seesChain(requirements))
      // Nothing here shows whether a spent nonce paid us, so it counts as spent: a 402 could charge
      // a second time.
      return why === 'late'
        ? this.#refuse(record, reason, remember)
        : this.#giveUp(record, { kind: 'spent', state: 'used' });
    const shown = await this.#parts.rail.reconcile(proof, requirements);
    if (shown.kind === 'settled') return this.#recover(record, shown);
    if (shown.kind === 'refused' || (shown.kind === 'open' && why === 'late'))
      return this.#refuse(record, reason, remember);
    const cause = shown.kind === 'unknown' ? shown.cause : 'said to be spent, the chain shows it unspent';
    return this.#giveUp(record, { kind: 'unavailable', cause: `${reason}: ${cause}` });
  }

  /**
   * Makes a record that the store lost again from the payment that the chain shows, and delivers
   * once. Where another gateway or another buyer may have used the proof, the answer is 409, and
   * the operator is warned.
   */
  async #recover(record: PaymentRecord, shown: Settled): Promise<StepResult> {
    const claim = await claimOfLost(this.#parts, record, shown, this.#request.terms);
    if (claim.kind === 'unknown') return this.#giveUp(record, { kind: 'unavailable', cause: claim.cause });
    if (claim.kind === 'unclaimed') return this.#giveUp(record, { kind: 'spent', state: 'used' });
    return beginSettling(this.#context, record, {}, (settling) =>
      this.#recordOutcome(settling, { ...shown, by: undefined }, claim.facts),
    );
  }

  async #settle(
    record: PaymentRecord,
    sentBefore: boolean,
    more?: Pick<SettlementHistory, 'withdrawnBefore'>,
  ): Promise<StepResult> {
    // Nothing is sent from here any more; another process finds the record and goes on with it.
    if (!this.#request.gateOpen()) return leaveUncertain(this.#context, record, 'the gateway is closing');
    const { proof, requirements } = this.#readProof(record);
    const known = { ...this.#historyOf(record, sentBefore), ...more };
    passed('sending', record.payId);
    const settlement = await this.#parts.rail.settle(proof, requirements, writeAhead(this.#context, record), known);
    passed('answered', record.payId);
    return this.#recordOutcome(record, settlement);
  }

  /**
   * Takes over a settlement without a written outcome: the chain decides, and an open authorization
   * may be sent again.
   */
  async #resolve(record: PaymentRecord): Promise<StepResult> {
    const { proof, requirements } = readForChain(record);
    const shown = await this.#parts.rail.reconcile(proof, requirements, this.#historyOf(record, true));
    if (shown.kind === 'unknown') return leaveUncertain(this.#context, record, shown.cause);
    if (shown.kind !== 'open') return this.#recordOutcome(record, shown);
    // An earlier transaction may still pay us. Nothing more is sent for a call that cannot be
    // delivered: a later look decides.
    if (record.answered === undefined && !(await this.#holdsBackend(record)))
      return leaveUncertain(this.#context, record, NOT_REACHED.cause);
    const settled = await this.#inSlot(record, () => this.#settle(record, true));
    const crowded = 'too many settlements of this payer, or of all, are under way';
    return settled ?? leaveUncertain(this.#context, record, crowded);
  }
}

/** The reason if an authorization was too old to begin when its record last changed. */
function endOf(record: PaymentRecord): string | undefined {
  return tooLate({ ...record, reservedAt: record.changedAt });
}

function unfunded({ cause }: Extract<RailVerdict, { readonly kind: 'unfunded' }>): StepResult {
  return { kind: 'postponed', reason: 'relayer_unfunded', cause };
}

/** How long a call waits for another one with the same proof, milliseconds (contract 4.3). */
export const JOIN_MS = 3_000;
/**
 * Copies of one authorization that this process works on at a time. Each copy holds a slot of the
 * process, so without a bound one proof would keep other buyers out.
 */
export const MOST_COPIES = 8;
/** Pauses of looks at the running call's record, milliseconds: short at first, as calls are. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 200;
const PAUSE_GROWTH = 1.5;

/**
 * Makes copies of one proof wait for the first call, and then get its answer or its failure. The
 * copies share one look at the record; copies beyond `MOST_COPIES` are answered "in flight" at
 * once, without a question to the store.
 */
export function joining(settler: Settler, ledger: Pick<PaymentLedger, 'read'>, time: Time = REAL_TIME): Settler {
  const looks = new Map<string, Promise<void>>();
  const untilShared = (payId: string, after: number): Promise<void> => {
    const shared = looks.get(payId);
    if (shared !== undefined) return shared;
    const own = untilIdle(ledger, payId, after, time).finally(() => looks.delete(payId));
    looks.set(payId, own);
    return own;
  };
  const copies = new Counts();
  const settleOrWait = async (request: SettlementRequest): Promise<SettlementResult> => {
    const ends = time.now() + JOIN_MS;
    const { left: leaving } = request;
    const gone = new Promise<void>((resolve) => leaving?.addEventListener('abort', () => resolve(), { once: true }));
    for (let attempt = 0; ; attempt += 1) {
      const result = await settler.settle(request, attempt > 0);
      const left = ends - time.now();
      if (result.kind !== 'in_flight' || result.alone === true || left <= 0) return result;
      // The attempt that works on it may have died: then this call goes on when the lease ends.
      const lease = result.leaseLeftMs === undefined ? left : result.leaseLeftMs + CLOCK_GRAIN_MS;
      await Promise.race([untilShared(request.terms.payId, attempt), time.sleep(Math.min(left, lease)), gone]);
    }
  };
  return {
    async settle(request) {
      const { payId } = request.terms;
      if (copies.of(payId) >= MOST_COPIES) return { kind: 'in_flight', alone: true };
      copies.add([payId], 1);
      try {
        return await settleOrWait(request);
      } finally {
        copies.add([payId], -1);
      }
    },
  };
}

/**
 * Resolves when no attempt works on the record any more, or after `JOIN_MS`. Never rejects. `after`
 * attempts in vain its pauses start longer: a record that only its key opens is idle, and still not
 * granted to this call.
 */
async function untilIdle(ledger: Pick<PaymentLedger, 'read'>, payId: string, after: number, time: Time): Promise<void> {
  const ends = time.now() + JOIN_MS;
  for (let looks = after; time.now() < ends; looks += 1) {
    const pause = Math.min(FIRST_PAUSE_MS * PAUSE_GROWTH ** looks, LONGEST_PAUSE_MS);
    await time.sleep(pause);
    // The next attempt gets the error of a silent store.
    const record = await ledger.read(payId).catch(() => undefined);
    if (record === undefined || isIdle(record)) return;
  }
}

function isIdle(record: PaymentRecord): boolean {
  return isFinal(record.state) || record.leaseUntil === 0;
}
