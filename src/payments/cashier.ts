import { randomUUID } from 'node:crypto';
import {
  closeSettlement,
  deliveryLeaseMs,
  leaveUncertain,
  REQUEST_MAY_BE_WRITTEN,
  REQUEST_NOT_WRITTEN,
} from './closing.ts';
import { holder } from './holder.ts';
import type { PaymentLedger, PaymentRecord } from './ledger/ledger.ts';
import { persist } from './persist.ts';
import { type Purchase, recall } from './recall.ts';
import { notOurs, type Order, type Sale } from './sale.ts';
import type { PaymentRail, SettlementHistory, SignedTransaction } from './x402/rail.ts';

/** Lease until something is sent, milliseconds: reading the chain (3 s), verifying (6.5 s with its glance at the chain), a margin. */
const VERIFY_LEASE_MS = 15_000;
/** Lease while the rail settles, milliseconds: its deadline of 60 s and a margin. */
const SETTLE_LEASE_MS = 65_000;

/**
 * Takes payments: the order of CONTRACT 4.2 steps 6 to 9 and the table of 4.3, over a ledger and a rail. Nothing here knows HTTP.
 * Every step that can move money is preceded by the write that lets another process find it.
 */
export interface Cashier {
  /** @throws whatever the ledger throws, but only while this call can have moved no money. */
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
    const { record } = reservation;
    const { refusal } = this.#order;
    switch (record.state) {
      case 'reserved':
        // It was let through for the sake of a record that is gone meanwhile, or that never came to anything.
        if (refusal !== undefined) return this.#giveUp(record, { kind: 'refused', reason: refusal, phase: 'verify' });
        return this.#verify(record);
      case 'settling':
        return this.#orUncertain(record, () => this.#resolve(record));
      default:
        return this.#resume(record);
    }
  }

  /** Asks the rail, which may only say no. A refusal leaves no record: nothing was sent, the buyer may sign again. */
  async #verify(record: PaymentRecord): Promise<Sale> {
    const { proof, requirements } = this.#recall(record);
    const verdict = await this.#rail.verify(proof, requirements);
    if (verdict.kind === 'refused' && verdict.nonceSpent) return this.#spentElsewhere(record, verdict.reason);
    if (verdict.kind === 'unavailable') return this.#giveUp(record, verdict);
    if (verdict.kind === 'refused')
      return this.#giveUp(record, { kind: 'refused', reason: verdict.reason, phase: 'verify' });
    const settling = await this.#enterSettling(record);
    if (settling === undefined) return { kind: 'in_flight' };
    return this.#orUncertain(settling, () => this.#settle(settling, { sentBefore: false }));
  }

  /** Deletes the reservation. Whoever lost it to another attempt must not say what that attempt has to say. */
  async #giveUp(record: PaymentRecord, sale: Sale): Promise<Sale> {
    const discarded = await this.#ledger.discard(holder(record), []);
    return discarded.kind === 'gone' ? sale : { kind: 'in_flight' };
  }

  /** The write before anything is sent. Undefined when another attempt took over. @throws when the store is silent */
  async #enterSettling(record: PaymentRecord): Promise<PaymentRecord | undefined> {
    const { journal } = this.#order;
    const earlier = journal.take();
    journal.record('payment.verified', { status: 'ok', paymentProvider: 'x402' });
    const events = [...earlier, ...journal.take()];
    const step = { ...holder(record), to: 'settling', leaseMs: SETTLE_LEASE_MS, events } as const;
    const settling = await persist(() => this.#ledger.advance(step));
    if (settling.kind === 'done') return settling.record;
    journal.putBack(earlier);
    if (settling.kind === 'unwritten') throw settling.cause;
    if (settling.kind === 'illegal') throw new Error(`illegal transition ${settling.state} -> settling`);
    return undefined;
  }

  /** The nonce is spent but we have no record: only the chain can tell whether it paid us, and then 402 would charge twice. */
  async #spentElsewhere(record: PaymentRecord, reason: string): Promise<Sale> {
    const { proof, requirements } = this.#recall(record);
    const shown = await this.#rail.reconcile(proof, requirements, undefined);
    switch (shown.kind) {
      case 'refused':
        return this.#giveUp(record, { kind: 'refused', reason, phase: 'verify' });
      case 'settled':
        return this.#giveUp(record, { kind: 'spent', state: 'used' });
      default:
        return this.#giveUp(record, {
          kind: 'unavailable',
          cause: `said to be spent (${reason}), the chain shows ${shown.kind}`,
        });
    }
  }

  async #settle(record: PaymentRecord, history: SettlementHistory): Promise<Sale> {
    // The gate may have closed while the rail verified. Nothing was sent, so the lease is all there is to give back.
    if (!this.#order.gateOpen()) {
      await this.#ledger.release(holder(record));
      return { kind: 'gate_closed' };
    }
    const writeAhead = async ({ hash, raw }: SignedTransaction): Promise<void> => {
      const facts = { transaction: hash, rawTransaction: raw };
      const noted = await this.#ledger.note(holder(record), facts, SETTLE_LEASE_MS);
      if (noted.kind !== 'done') throw new Error(`write-ahead refused: ${noted.kind}`);
    };
    const { proof, requirements } = this.#recall(record);
    const settlement = await this.#rail.settle(proof, requirements, writeAhead, history);
    return closeSettlement(this.#ledger, this.#order, record, settlement);
  }

  /** Takes over a settlement whose outcome nobody wrote down: the chain decides, and an open authorization may be sent again. */
  async #resolve(record: PaymentRecord): Promise<Sale> {
    const { proof, requirements } = this.#recall(record);
    const shown = await this.#rail.reconcile(proof, requirements, record.transaction);
    if (shown.kind === 'unknown') return this.#stayUncertain(record, shown.cause);
    if (shown.kind !== 'open') return closeSettlement(this.#ledger, this.#order, record, shown);
    const verdict = await this.#rail.verify(proof, requirements);
    if (verdict.kind !== 'valid') {
      const said = verdict.kind === 'refused' ? verdict.reason : verdict.cause;
      return this.#stayUncertain(record, `open, but not payable now: ${said}`);
    }
    const renewed = await this.#ledger.note(holder(record), {}, SETTLE_LEASE_MS);
    return renewed.kind === 'done' ? this.#settle(renewed.record, { sentBefore: true }) : { kind: 'in_flight' };
  }

  /** Without a chain to ask, a refusal may mean that we were paid: then no time is safe for signing anew. */
  async #stayUncertain(record: PaymentRecord, cause: string): Promise<Sale> {
    const left = await leaveUncertain(this.#ledger, record, cause);
    return { ...left, resignSafe: this.#rail.seesChain };
  }

  /** The money moved earlier and nothing was delivered: collect now, unless the merchant might then do the work twice. */
  async #resume(record: PaymentRecord): Promise<Sale> {
    if (this.#order.repeatable || record.reason === REQUEST_NOT_WRITTEN) {
      // Said before the request leaves, so that a crash on the way cannot let it out a second time.
      const [token, said] = [holder(record), { reason: REQUEST_MAY_BE_WRITTEN }];
      const leaseMs = deliveryLeaseMs(this.#order.backendTimeoutMs);
      const kept = await persist(() => this.#ledger.note(token, said, leaseMs));
      if (kept.kind === 'done') return { kind: 'paid', record: kept.record };
      if (kept.kind !== 'unwritten') return { kind: 'in_flight' };
      // It may have been written all the same, and the request did not leave.
      const unsaid = record.reason === REQUEST_NOT_WRITTEN ? { reason: REQUEST_NOT_WRITTEN } : {};
      await this.#ledger.note(holder(record), unsaid, 0).catch(() => undefined);
      throw kept.cause;
    }
    await this.#ledger.release(holder(record));
    return { kind: 'spent', state: 'undelivered', record };
  }

  /** Once a settlement may have begun, whatever fails leaves its outcome open: it is never an error of this call alone. */
  async #orUncertain(record: PaymentRecord, step: () => Promise<Sale>): Promise<Sale> {
    try {
      return await step();
    } catch (cause) {
      return leaveUncertain(this.#ledger, record, cause);
    }
  }

  #recall(record: PaymentRecord): Purchase {
    return recall(record, this.#order.offer);
  }
}
