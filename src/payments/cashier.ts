import { randomUUID } from 'node:crypto';
import type { Journal } from '../events/journal.ts';
import type {
  Advance,
  Advanced,
  Holder,
  PaymentLedger,
  PaymentRecord,
  PaymentTerms,
  Reservation,
} from './ledger/ledger.ts';
import { persist } from './persist.ts';
import { type Purchase, recall } from './recall.ts';
import { receiptOf } from './receipt.ts';
import type { PaymentRail, Proof, Settlement, SettlementHistory, SignedTransaction } from './x402/rail.ts';
import type { PaymentRequirements } from './x402/wire.ts';

/** Lease while the rail verifies: its deadline of 5 s and a margin. */
const VERIFY_LEASE_MS = 7_000;
/** Lease while the rail settles: its deadline of 60 s and a margin. */
const SETTLE_LEASE_MS = 65_000;
/** Margin over the backend's deadline while a settled call is being delivered. */
const DELIVERY_MARGIN_MS = 5_000;

/** `reason` of an undelivered record whose request certainly never reached the merchant: any method may be sent again. */
export const REQUEST_NOT_WRITTEN = 'request_not_written';

/** What a buyer brings to the till. */
export interface Order {
  readonly terms: PaymentTerms;
  readonly proof: Proof;
  readonly offer: PaymentRequirements;
  readonly journal: Journal;
  /** Whether the merchant may be sent this request a second time. */
  readonly repeatable: boolean;
  /** Total backend deadline of the resource: the settled record stays leased that long. */
  readonly backendTimeoutMs: number;
  /** Milliseconds since the call came in. */
  readonly elapsedMs: () => number;
  /** The settlement gate: false while the gateway must not start to move money (draining). */
  readonly gateOpen: () => boolean;
}

/** What came of it. Only `paid` may reach the merchant; only `refused` may be answered 402. */
export type Sale =
  | { readonly kind: 'paid'; readonly record: PaymentRecord }
  | {
      readonly kind: 'refused';
      readonly reason: string;
      readonly phase: 'verify' | 'settle';
      readonly transaction?: string;
    }
  | { readonly kind: 'in_flight' }
  | {
      readonly kind: 'spent';
      readonly state: 'used' | 'delivered' | 'undelivered' | 'refundDue';
      readonly record?: PaymentRecord;
    }
  | { readonly kind: 'uncertain'; readonly validBefore: number; readonly transaction?: string; readonly cause: unknown }
  | { readonly kind: 'unavailable'; readonly cause: string }
  | { readonly kind: 'gate_closed' };

/**
 * Takes payments: the order of CONTRACT 4.2 steps 6 to 9 and the table of 4.3, over a ledger and a rail. Nothing here knows HTTP.
 * Every step that can move money is preceded by the write that lets another process find it.
 */
export interface Cashier {
  /** @throws StoreError only while no money can have moved. */
  take(order: Order): Promise<Sale>;
}

export function createCashier(ledger: PaymentLedger, rail: PaymentRail): Cashier {
  return { take: (order) => new Till(ledger, rail, order).take() };
}

/** One order at the till: what the steps of a sale share. */
class Till {
  readonly #ledger: PaymentLedger;
  readonly #rail: PaymentRail;
  readonly #order: Order;

  constructor(ledger: PaymentLedger, rail: PaymentRail, order: Order) {
    this.#ledger = ledger;
    this.#rail = rail;
    this.#order = order;
  }

  async take(): Promise<Sale> {
    if (!this.#order.gateOpen()) return { kind: 'gate_closed' };
    const { terms } = this.#order;
    const reservation = await this.#ledger.reserve({ terms, owner: randomUUID(), leaseMs: VERIFY_LEASE_MS });
    if (reservation.kind !== 'run') return notOurs(reservation);
    switch (reservation.record.state) {
      case 'reserved':
        return this.#verify(reservation.record);
      case 'settling':
        return this.#resolve(reservation.record).catch((cause: unknown) =>
          this.#leaveUncertain(reservation.record, cause, undefined),
        );
      default:
        return this.#resume(reservation.record);
    }
  }

  /** The money moved earlier and nothing was delivered: collect now, unless the merchant might then do the work twice. */
  async #resume(record: PaymentRecord): Promise<Sale> {
    if (this.#order.repeatable || record.reason === REQUEST_NOT_WRITTEN) {
      const leaseMs = this.#order.backendTimeoutMs + DELIVERY_MARGIN_MS;
      const kept = await this.#ledger.note(holder(record), {}, leaseMs);
      return kept.kind === 'done' ? { kind: 'paid', record: kept.record } : { kind: 'in_flight' };
    }
    await this.#ledger.release(holder(record));
    return { kind: 'spent', state: 'undelivered', record };
  }

  /** Asks the rail, which may only say no. A refusal leaves no record: nothing was sent, the buyer may sign again. */
  async #verify(record: PaymentRecord): Promise<Sale> {
    const { journal } = this.#order;
    const { proof, requirements } = this.#recall(record);
    const verdict = await this.#rail.verify(proof, requirements);
    if (verdict.kind === 'valid') {
      journal.record('payment.verified', { status: 'ok', paymentProvider: 'x402' });
      const settling = await this.#ledger.advance({
        ...holder(record),
        to: 'settling',
        leaseMs: SETTLE_LEASE_MS,
        events: journal.take(),
      });
      if (settling.kind !== 'done') return { kind: 'in_flight' };
      return this.#settle(settling.record, { sentBefore: false });
    }
    if (verdict.kind === 'refused' && verdict.nonceSpent) return this.#spentElsewhere(record, verdict.reason);
    await this.#ledger.discard(holder(record), []);
    if (verdict.kind === 'unavailable') return { kind: 'unavailable', cause: verdict.cause };
    return { kind: 'refused', reason: verdict.reason, phase: 'verify' };
  }

  /** The nonce is spent but we have no record: only the chain can tell whether it paid us, and then 402 would charge twice. */
  async #spentElsewhere(record: PaymentRecord, reason: string): Promise<Sale> {
    const { proof, requirements } = this.#recall(record);
    const shown = await this.#rail.reconcile(proof, requirements, undefined);
    await this.#ledger.discard(holder(record), []);
    return shown.kind === 'refused' ? { kind: 'refused', reason, phase: 'verify' } : { kind: 'spent', state: 'used' };
  }

  async #settle(record: PaymentRecord, history: SettlementHistory): Promise<Sale> {
    // The gate may have closed while the rail verified. Nothing was sent, so the lease is all there is to give back.
    if (!this.#order.gateOpen()) {
      await this.#ledger.release(holder(record));
      return { kind: 'gate_closed' };
    }
    const writeAhead = async ({ hash, raw }: SignedTransaction): Promise<void> => {
      const noted = await this.#ledger.note(
        holder(record),
        { transaction: hash, rawTransaction: raw },
        SETTLE_LEASE_MS,
      );
      if (noted.kind !== 'done') throw new Error(`write-ahead refused: ${noted.kind}`);
    };
    const { proof, requirements } = this.#recall(record);
    try {
      return await this.#close(record, await this.#rail.settle(proof, requirements, writeAhead, history));
    } catch (cause) {
      return this.#leaveUncertain(record, cause, undefined);
    }
  }

  /** Takes over a settlement whose outcome nobody wrote down: the chain decides, and an open authorization may be sent again. */
  async #resolve(record: PaymentRecord): Promise<Sale> {
    const { proof, requirements } = this.#recall(record);
    const shown = await this.#rail.reconcile(proof, requirements, record.transaction);
    if (shown.kind === 'unknown') return this.#leaveUncertain(record, shown.cause, record.transaction);
    if (shown.kind !== 'open') return this.#close(record, shown);
    const verdict = await this.#rail.verify(proof, requirements);
    if (verdict.kind !== 'valid')
      return this.#leaveUncertain(record, `open, but not payable now: ${verdict.kind}`, record.transaction);
    const renewed = await this.#ledger.note(holder(record), {}, SETTLE_LEASE_MS);
    return renewed.kind === 'done' ? this.#settle(renewed.record, { sentBefore: true }) : { kind: 'in_flight' };
  }

  /** Writes the outcome of a settlement down. From here on a store that fails makes the outcome uncertain, never a 402. */
  async #close(record: PaymentRecord, settlement: Settlement): Promise<Sale> {
    switch (settlement.kind) {
      case 'settled':
        return this.#closeSettled(record, settlement.transaction);
      case 'refused':
        return this.#closeRefused(record, settlement);
      default:
        return this.#leaveUncertain(record, settlement.cause, settlement.transaction);
    }
  }

  async #closeSettled(record: PaymentRecord, transaction: string): Promise<Sale> {
    const { journal, elapsedMs, backendTimeoutMs } = this.#order;
    const { network, amount, currency, payer } = record;
    journal.record('payment.settled', {
      status: 'ok',
      paymentProvider: 'x402',
      durationMs: elapsedMs(),
      data: { transaction, network, amount, currency, payer },
    });
    const now = new Date();
    const settled = await this.#write({
      ...holder(record),
      to: 'settled',
      leaseMs: backendTimeoutMs + DELIVERY_MARGIN_MS,
      facts: { transaction },
      receipt: receiptOf(record, {
        transaction,
        settledAt: now,
        at: now,
        durationMs: elapsedMs(),
        delivery: undefined,
      }),
      events: journal.take(),
    });
    if (settled.kind === 'done') return { kind: 'paid', record: settled.record };
    return this.#uncertain(record, `settled on chain, but the ledger answered ${settled.kind}`, transaction);
  }

  async #closeRefused(record: PaymentRecord, refusal: Extract<Settlement, { kind: 'refused' }>): Promise<Sale> {
    const { reason, transaction } = refusal;
    const facts = transaction === undefined ? { reason } : { reason, transaction };
    const refused = await this.#write({ ...holder(record), to: 'refused', leaseMs: 0, facts, events: [] });
    if (refused.kind !== 'done')
      return this.#uncertain(record, `refused, but the ledger answered ${refused.kind}`, transaction);
    return { kind: 'refused', reason, phase: 'settle', ...(transaction === undefined ? {} : { transaction }) };
  }

  /** Keeps the hash if there is one and gives the lease up, so that the same proof may ask again at once. */
  async #leaveUncertain(record: PaymentRecord, cause: unknown, transaction: string | undefined): Promise<Sale> {
    try {
      if (transaction !== undefined && transaction !== record.transaction)
        await this.#ledger.note(holder(record), { transaction }, SETTLE_LEASE_MS);
      await this.#ledger.release(holder(record));
    } catch {
      // The lease ends by itself; what matters is that the answer stays "uncertain".
    }
    return this.#uncertain(record, cause, transaction);
  }

  #recall(record: PaymentRecord): Purchase {
    return recall(record, this.#order.proof, this.#order.offer);
  }

  #uncertain(record: PaymentRecord, cause: unknown, transaction: string | undefined): Sale {
    return {
      kind: 'uncertain',
      validBefore: record.validBefore,
      cause,
      ...(transaction === undefined ? {} : { transaction }),
    };
  }

  #write(command: Advance): Promise<Advanced | { readonly kind: 'unwritten'; readonly cause: unknown }> {
    return persist(() => this.#ledger.advance(command));
  }
}

/** A command token for this holder: a retried write carries the same and changes nothing twice. */
export function holder(record: PaymentRecord): Holder {
  return { payId: record.payId, owner: record.owner, fence: record.fence, step: randomUUID() };
}

/** The rows of CONTRACT 4.3 for a proof that somebody already brought. */
function notOurs(reservation: Exclude<Reservation, { kind: 'run' }>): Sale {
  const { record } = reservation;
  if (reservation.kind === 'busy') return { kind: 'in_flight' };
  if (reservation.kind === 'used') return { kind: 'spent', state: 'used', record };
  switch (record.state) {
    case 'refused':
      return { kind: 'refused', reason: record.reason ?? 'payment_refused', phase: 'settle' };
    case 'delivered':
    case 'undelivered':
    case 'refundDue':
      return { kind: 'spent', state: record.state, record };
    default:
      return { kind: 'in_flight' };
  }
}
