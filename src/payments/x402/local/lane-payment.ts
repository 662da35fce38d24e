/** A payment in the lane, from its order to its outcome. */

import type { Settlement, SettlementHistory, SignedTransaction } from '../../rail.ts';
import type { PaymentRequirements, Proof } from '../wire/types.ts';
import type { Excluded } from './relayer.ts';
import type { Transfer } from './transfer.ts';

/** One order to settle. */
export interface LaneOrder {
  readonly proof: Proof;
  readonly offer: PaymentRequirements;
  readonly transfer: Transfer;
  readonly history: SettlementHistory;
  /** Keeps a hash in the payment's record. When it rejects, that transaction must not carry it. */
  readonly writeAhead: (transaction: SignedTransaction) => Promise<void>;
  /** When it has to have an outcome, on the lane's clock, milliseconds. */
  readonly endsAt: number;
  /** When its transfer passed a simulation, on the lane's clock; undefined: in none. */
  readonly simulatedAt: number | undefined;
}

/** A transaction with the payment that a node refused: it keeps nothing of it. */
interface Refusal {
  readonly sending: Excluded;
  readonly inBatch: boolean;
}

/** An order that is under way in this process. */
export class LanePayment {
  readonly order: LaneOrder;
  readonly settlement: Promise<Settlement>;
  /** The hashes of its transactions, all of which its record has or had. */
  readonly signed = new Set<string>();
  readonly #resolve: (settlement: Settlement | Promise<Settlement>) => void;
  #sent = false;
  #refusal: Refusal | undefined;
  #ended = false;

  constructor(order: LaneOrder) {
    this.order = order;
    const { promise, resolve } = Promise.withResolvers<Settlement>();
    this.settlement = promise;
    this.#resolve = resolve;
  }

  get transfer(): Transfer {
    return this.order.transfer;
  }

  get mark(): string | undefined {
    return this.order.history.mark;
  }

  get payer(): string {
    return this.transfer.authorization.from.toLowerCase();
  }

  /** A node may have taken a transaction of it, in this attempt or an earlier one. */
  get history(): SettlementHistory {
    const { history } = this.order;
    if (this.#sent) return { ...history, sentBefore: true };
    return this.#refusal === undefined ? history : { ...history, withdrawnBefore: true };
  }

  noteSent(): void {
    this.#sent = true;
  }

  /** The last one, of this attempt. */
  get refusal(): Refusal | undefined {
    return this.#refusal;
  }

  noteRefused(refusal: Refusal): void {
    this.#refusal = refusal;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The first outcome counts. */
  end(settlement: Settlement | Promise<Settlement>): void {
    this.#ended = true;
    this.#resolve(settlement);
  }
}

/** Which of the payments have the hash of a transaction in their records, and which have not. */
interface Kept {
  readonly kept: readonly LanePayment[];
  readonly lost: readonly { readonly payment: LanePayment; readonly cause: unknown }[];
}

/**
 * Writes one transaction ahead for all its payments, in one round trip of the store. Only a
 * transaction of one payment is kept with its bytes.
 */
export async function keepHash(payments: readonly LanePayment[], signed: SignedTransaction): Promise<Kept> {
  const transaction = payments.length === 1 ? signed : { hash: signed.hash };
  const written = await Promise.allSettled(payments.map(({ order }) => order.writeAhead(transaction)));
  const kept: LanePayment[] = [];
  const lost: { payment: LanePayment; cause: unknown }[] = [];
  for (const [at, payment] of payments.entries()) {
    const result = written[at];
    if (result?.status === 'fulfilled') {
      payment.signed.add(signed.hash);
      kept.push(payment);
    } else lost.push({ payment, cause: result?.reason });
  }
  return { kept, lost };
}
