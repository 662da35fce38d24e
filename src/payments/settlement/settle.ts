import { randomUUID } from 'node:crypto';
import type { HeldConnection } from '../../backend/exchange.ts';
import { REAL_TIME, type Time } from '../../time/time.ts';
import { fencingToken, type PaymentLedger, type PaymentRecord } from '../ledger/ledger.ts';
import type { Refusal } from '../ledger/refusals.ts';
import type { RailVerdict, Settled, SettlementHistory } from '../rail.ts';
import { passed } from '../steps.ts';
import type { PaymentRail } from '../x402/wire/types.ts';
import { tooLate } from '../x402/wire/window.ts';
import { answerExisting, isUnderOtherMandate, rememberedRefusal, resumeDelivery } from './existing-payment.ts';
import { createReservations, LEASE_MS, type Leases, type Reservations } from './reservations.ts';
import { windowEndMs } from './retry-policy.ts';
import { SafeToRechallenge } from './safe-to-rechallenge.ts';
import {
  NEVER_ANEW,
  type SettlementMade,
  type SettlementRequest,
  type SettlementResult,
} from './settlement-request.ts';
import {
  beginSettling,
  closeSettlement,
  type LedgerContext,
  leaveUncertain,
  orUncertain,
  writeAhead,
} from './settlement-writes.ts';
import { createSettlementSlots, type SettlementSlots } from './slots.ts';
import { claimed, markFor, type StoreLossParts } from './store-loss.ts';
import { readStoredProof, recallForChain, UNREADABLE, unreadable } from './stored-purchase.ts';

/**
 * Deadlines of a sale, without the merchant's: chain 3 s, a place 3 s, verify 6.5 s, settle 60 s,
 * the slowest reader 130 s.
 */
const SALE_BOUND_MS = 205_000;

const NOT_REACHED = {
  kind: 'postponed',
  reason: 'backend_unreachable',
  cause: 'no connection to the merchant',
} as const;

/** What a settlement works with. */
export interface SettlementParts extends StoreLossParts {
  readonly ledger: PaymentLedger;
  readonly leases: Leases;
  readonly time?: Time;
}

/**
 * Takes payments: the order of contract 4.2 steps 6 to 9 and the table of 4.3, over a ledger and a
 * rail. Nothing here knows HTTP. Every step that can move money is preceded by the write that lets
 * another process find it.
 */
export interface Settler {
  /**
   * One attempt. `joined`: this call has waited for another one with the same authorization, so it
   * may have that one's answer.
   * @throws whatever the ledger throws, but only while this call can have moved no money.
   */
  take(order: SettlementRequest, joined?: boolean): Promise<SettlementResult>;
}

export function createSettler(parts: SettlementParts): Settler {
  const shared = {
    places: createSettlementSlots(parts.time),
    reservations: createReservations(parts.ledger, parts.time),
  };
  return { take: (order, joined = false) => new SettlementAttempt(parts, shared, order).take(joined) };
}

/** One request to settle: what its steps share. */
class SettlementAttempt {
  readonly #ledger: PaymentLedger;
  readonly #books: LedgerContext;
  readonly #rail: PaymentRail;
  readonly #leases: Leases;
  readonly #storeLoss: StoreLossParts;
  readonly #places: SettlementSlots;
  readonly #reservations: Reservations;
  readonly #order: SettlementRequest;
  #held: HeldConnection | undefined;

  constructor(
    { ledger, leases, time = REAL_TIME, ...storeLoss }: SettlementParts,
    { places, reservations }: { readonly places: SettlementSlots; readonly reservations: Reservations },
    order: SettlementRequest,
  ) {
    this.#ledger = ledger;
    this.#rail = storeLoss.rail;
    this.#leases = leases;
    this.#storeLoss = storeLoss;
    this.#books = { ledger, time };
    this.#places = places;
    this.#reservations = reservations;
    this.#order = order;
  }

  async take(joined: boolean): Promise<SettlementResult> {
    if (!this.#order.gateOpen()) return { kind: 'gate_closed' };
    if (this.#order.left?.aborted === true) return { kind: 'gone' };
    const { terms, backendTimeoutMs, proof, token } = this.#order;
    // Before the store is asked: the way of its reply is no waiting for somebody's answer.
    const waitedMs = this.#order.elapsedMs();
    const reservation = await this.#reservations.reserve({
      terms,
      owner: randomUUID(),
      leaseMs: LEASE_MS,
      longestMs: LEASE_MS,
      ...(proof === undefined ? {} : { proof }),
      ...(token === undefined ? {} : { token }),
    });
    if (reservation.kind !== 'granted') return answerExisting(this.#ledger, reservation, terms, { joined, waitedMs });
    const { record } = reservation;
    passed('reserved', record.payId);
    const lease = this.#leases.hold(record, SALE_BOUND_MS + backendTimeoutMs);
    let made: SettlementMade | undefined;
    try {
      made = await this.#work(record, joined);
    } finally {
      if (made?.kind !== 'paid') {
        lease.drop();
        this.#held?.release();
      }
    }
    return made.kind === 'paid' ? { ...made, lease, held: this.#held } : made;
  }

  #work(record: PaymentRecord, joined: boolean): Promise<SettlementMade> {
    switch (record.state) {
      case 'reserved':
        // Copies that wait for this one and answers that stand need no place.
        return this.#places.within(
          record.payer,
          () => this.#begin(record),
          () => this.#giveUp(record, () => ({ kind: 'crowded' })),
        );
      case 'withdrawn':
        return this.#places.within(
          record.payer,
          () => this.#beginAnew(record),
          () => this.#putBack(record, { kind: 'crowded' }),
        );
      case 'settling':
        return orUncertain(this.#books, record, () => this.#resolve(record));
      default:
        return resumeDelivery(this.#books, this.#order, record, joined);
    }
  }

  #begin(record: PaymentRecord): Promise<SettlementMade> {
    if (unreadable(record)) return this.#giveUp(record, () => ({ kind: 'unavailable', cause: UNREADABLE }));
    if (!this.#buyerIsHere()) return this.#giveUp(record, () => ({ kind: 'gone' }));
    if (isUnderOtherMandate(record, this.#order.terms)) return this.#giveUp(record, () => ({ kind: 'in_flight' }));
    // A proof with a fault was let through for the sake of a record that is gone meanwhile, or that
    // the store may have lost.
    const refusal = this.#order.refusal ?? tooLate(record);
    if (refusal === NEVER_ANEW) return this.#refuse(record, refusal);
    return refusal === undefined ? this.#verify(record) : this.#perhapsForgotten(record, refusal, 'late');
  }

  /**
   * Asks the rail, which may only say no. A refusal leaves no record: nothing was sent, the buyer
   * may sign again.
   */
  async #verify(record: PaymentRecord): Promise<SettlementMade> {
    const { proof, requirements } = readStoredProof(record);
    const verdict = await this.#rail.verify(proof, requirements);
    if (verdict.kind === 'unavailable') return this.#giveUp(record, () => verdict);
    if (verdict.kind === 'unfunded') return this.#giveUp(record, () => unfunded(verdict));
    if (verdict.kind === 'refused' && verdict.nonceSpent)
      return this.#perhapsForgotten(record, verdict.reason, 'spent');
    if (verdict.kind === 'refused')
      return this.#refuse(record, verdict.reason, rememberedRefusal(this.#order, record, verdict.reason));
    passed('verified', record.payId);
    if (!(await this.#holdsBackend())) return this.#giveUp(record, () => NOT_REACHED);
    // The gate may have closed while the rail verified. From the next write on another process may
    // settle this.
    if (!this.#order.gateOpen()) return this.#giveUp(record, () => ({ kind: 'gate_closed' }));
    if (!this.#buyerIsHere()) return this.#giveUp(record, () => ({ kind: 'gone' }));
    return beginSettling(this.#books, this.#order, record, true, (settling) =>
      this.#settle(settling, { sentBefore: false }),
    );
  }

  /**
   * What was signed for this payment was withdrawn, and the same proof comes again. A node may hold
   * the transaction although it said no, so the chain is asked first, and only the chain can lead
   * to a 402.
   */
  async #beginAnew(record: PaymentRecord): Promise<SettlementMade> {
    const order = this.#order;
    if (isUnderOtherMandate(record, order.terms)) return this.#putBack(record, { kind: 'in_flight' });
    const { proof, requirements } = recallForChain(record);
    const shown = await this.#rail.reconcile(proof, requirements, record.transaction);
    if (shown.kind === 'unknown') return this.#putBack(record, { kind: 'unavailable', cause: shown.cause });
    if (shown.kind !== 'open')
      return beginSettling(this.#books, order, record, false, (settling) =>
        closeSettlement(this.#books, order, settling, shown),
      );
    const notBegun = (why: string): Promise<SettlementMade> =>
      this.#putBack(record, { kind: 'unavailable', cause: `withdrawn, and not begun anew: ${why}` });
    if (!this.#buyerIsHere()) return notBegun('no buyer asks for it');
    const refusal = unreadable(record) ?? order.refusal ?? tooLate({ ...record, reservedAt: record.changedAt });
    if (refusal !== undefined) return notBegun(refusal);
    const verdict = await this.#rail.verify(proof, requirements);
    if (verdict.kind === 'unfunded') return this.#putBack(record, unfunded(verdict));
    if (verdict.kind === 'refused') return notBegun(verdict.reason);
    if (verdict.kind === 'unavailable') return notBegun(verdict.cause);
    if (!(await this.#holdsBackend())) return this.#putBack(record, NOT_REACHED);
    if (!order.gateOpen()) return this.#putBack(record, { kind: 'gate_closed' });
    if (!this.#buyerIsHere()) return this.#putBack(record, { kind: 'gone' });
    return beginSettling(this.#books, order, record, true, (settling) =>
      this.#settle(settling, { sentBefore: false, withdrawnBefore: true }),
    );
  }

  /** Leaves a withdrawn record to its buyer, and at the end of its window to the chain. */
  async #putBack(record: PaymentRecord, made: SettlementMade): Promise<SettlementMade> {
    const noted = await this.#ledger.note({ ...fencingToken(record), leaseMs: 0, againMs: windowEndMs(record) });
    return noted.kind === 'done' ? made : { kind: 'in_flight' };
  }

  /**
   * Holds a connection to the merchant for what may be paid now. False: there is none, so nothing
   * may be.
   */
  async #holdsBackend(): Promise<boolean> {
    this.#held = await this.#order.reserveBackend();
    return this.#held !== undefined;
  }

  /**
   * A call whose client is gone starts no money: a copy of it may have been refused, and its buyer
   * may be paying anew.
   */
  #buyerIsHere(): boolean {
    return this.#order.left?.aborted === false;
  }

  #refuse(record: PaymentRecord, reason: string, remembered?: Refusal): Promise<SettlementMade> {
    const refused = (gone: { readonly kind: 'gone' }): SettlementMade => ({
      kind: 'refused',
      owed: SafeToRechallenge.discarded(gone, reason),
    });
    return this.#giveUp(record, refused, remembered);
  }

  /**
   * Deletes the reservation. Whoever lost it to another attempt must not say what that attempt has
   * to say.
   */
  async #giveUp(
    record: PaymentRecord,
    sale: (gone: { readonly kind: 'gone' }) => SettlementMade,
    remembered?: Refusal,
  ): Promise<SettlementMade> {
    const discarded = await this.#ledger.discard(fencingToken(record), [], remembered);
    return discarded.kind === 'gone' ? sale(discarded) : { kind: 'in_flight' };
  }

  /**
   * There was no record, and yet the nonce is spent, or the proof is too old to be a new one: it
   * may have paid us before the store lost its memory. Only the chain can tell, and then a 402
   * would charge twice.
   */
  async #perhapsForgotten(record: PaymentRecord, reason: string, why: 'spent' | 'late'): Promise<SettlementMade> {
    if (!this.#rail.seesChain)
      // Whether a spent nonce paid us nobody can say here, so it is called spent: a 402 could
      // charge a second time.
      return why === 'late'
        ? this.#refuse(record, reason)
        : this.#giveUp(record, () => ({ kind: 'spent', state: 'used' }));
    const { proof, requirements } = readStoredProof(record);
    const shown = await this.#rail.reconcile(proof, requirements, undefined);
    if (shown.kind === 'settled') return this.#recover(record, shown);
    if (shown.kind === 'refused' || (shown.kind === 'open' && why === 'late'))
      // What the local checks have against it they will say again.
      return this.#refuse(record, reason, why === 'spent' ? rememberedRefusal(this.#order, record, reason) : undefined);
    const cause = shown.kind === 'unknown' ? shown.cause : 'said to be spent, the chain shows it unspent';
    return this.#giveUp(record, () => ({ kind: 'unavailable', cause: `${reason}: ${cause}` }));
  }

  /**
   * It paid us and the store forgot: the record is made again from what the chain shows, and
   * delivered once. Where another store may have sold for it, or another buyer bought, the answer
   * is 409, and an operator is told.
   */
  async #recover(record: PaymentRecord, shown: Settled): Promise<SettlementMade> {
    const claim = await claimed(this.#storeLoss, record, shown, this.#order.terms);
    if (claim.kind === 'unknown') return this.#giveUp(record, () => ({ kind: 'unavailable', cause: claim.cause }));
    if (claim.kind === 'unclaimed') return this.#giveUp(record, () => ({ kind: 'spent', state: 'used' }));
    return beginSettling(this.#books, this.#order, record, false, (settling) =>
      closeSettlement(this.#books, this.#order, settling, shown, claim.facts),
    );
  }

  async #settle(record: PaymentRecord, history: SettlementHistory): Promise<SettlementMade> {
    // Nothing is sent from here any more, but another process will find the record and go on with
    // it.
    if (!this.#order.gateOpen()) return leaveUncertain(this.#books, record, 'the gateway is closing');
    const { proof, requirements } = readStoredProof(record);
    const told = { ...history, ...markFor(record, this.#order) };
    passed('sending', record.payId);
    const settlement = await this.#rail.settle(proof, requirements, writeAhead(this.#ledger, record), told);
    passed('answered', record.payId);
    return closeSettlement(this.#books, this.#order, record, settlement);
  }

  /**
   * Takes over a settlement whose outcome nobody wrote down: the chain decides, and an open
   * authorization may be sent again.
   */
  async #resolve(record: PaymentRecord): Promise<SettlementMade> {
    const { proof, requirements } = recallForChain(record);
    const shown = await this.#rail.reconcile(proof, requirements, record.transaction, { sentBefore: true });
    if (shown.kind === 'unknown') return leaveUncertain(this.#books, record, shown.cause);
    if (shown.kind !== 'open') return closeSettlement(this.#books, this.#order, record, shown);
    // What was sent earlier may still pay us. Nothing more is sent for a call that cannot be
    // delivered: a later look decides.
    if (!(await this.#holdsBackend())) return leaveUncertain(this.#books, record, NOT_REACHED.cause);
    return this.#places.within(
      record.payer,
      () => this.#settle(record, { sentBefore: true }),
      () => leaveUncertain(this.#books, record, 'too many settlements of this payer, or of all, are under way'),
    );
  }
}

function unfunded({ cause }: Extract<RailVerdict, { readonly kind: 'unfunded' }>): SettlementMade {
  return { kind: 'postponed', reason: 'relayer_unfunded', cause };
}
