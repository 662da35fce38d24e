import type { Journal } from '../events/journal.ts';
import { holder } from './holder.ts';
import type { Advance, Advanced, PaymentFacts, PaymentLedger, PaymentRecord } from './ledger/ledger.ts';
import { persist } from './persist.ts';
import { receiptOf } from './receipt.ts';
import { type Order, type Sale, type Uncertain, uncertain } from './sale.ts';
import type { Settlement } from './x402/rail.ts';

/**
 * On top of the backend's deadline while a settled call is delivered, milliseconds: the reader's 60 s while the merchant sends, 60 s
 * for what is left in the buffers, and a margin.
 */
const DELIVERY_MARGIN_MS = 130_000;

/** `reason` of an undelivered record whose request certainly never reached the merchant: any method may be sent again. */
export const REQUEST_NOT_WRITTEN = 'request_not_written';
/** Its opposite, from the moment the request may leave. */
export const REQUEST_MAY_BE_WRITTEN = 'request_may_be_written';

/** How long a settled record stays leased for its delivery, milliseconds: the merchant's deadline and the slowest reader's. */
export function deliveryLeaseMs(backendTimeoutMs: number): number {
  return backendTimeoutMs + DELIVERY_MARGIN_MS;
}

/**
 * Writes the outcome of a settlement down. From here on a store that fails makes the outcome uncertain, never a 402: money may have
 * moved, and the record that says so must be found again by the same proof.
 */
export async function closeSettlement(
  ledger: PaymentLedger,
  order: Order,
  record: PaymentRecord,
  settlement: Settlement,
): Promise<Sale> {
  switch (settlement.kind) {
    case 'settled':
      return closeSettled(ledger, order, record, settlement.transaction);
    case 'refused':
      return closeRefused(ledger, order, record, settlement);
    default:
      return leaveUncertain(ledger, record, settlement.cause, transactionFact(settlement.transaction));
  }
}

/** Keeps the hash if there is one and gives the lease up, so that the same proof may ask again at once. */
export async function leaveUncertain(
  ledger: PaymentLedger,
  record: PaymentRecord,
  cause: unknown,
  facts: PaymentFacts = {},
): Promise<Uncertain> {
  try {
    await ledger.note(holder(record), facts, 0);
  } catch {
    // The lease ends by itself; what matters is that the answer stays "uncertain".
  }
  return uncertain(record, cause, facts.transaction ?? record.transaction);
}

async function closeSettled(
  ledger: PaymentLedger,
  { journal, elapsedMs, backendTimeoutMs }: Order,
  record: PaymentRecord,
  transaction: string,
): Promise<Sale> {
  const { network, amount, currency, payer } = record;
  const durationMs = elapsedMs();
  const earlier = journal.take();
  journal.record('payment.settled', {
    status: 'ok',
    paymentProvider: 'x402',
    durationMs,
    data: { transaction, network, amount, currency, payer },
  });
  const now = new Date();
  const settled = await write(ledger, {
    ...holder(record),
    to: 'settled',
    leaseMs: deliveryLeaseMs(backendTimeoutMs),
    facts: { transaction, reason: REQUEST_MAY_BE_WRITTEN },
    receipt: receiptOf(record, { transaction, settledAt: now, at: now, durationMs, delivery: undefined }),
    events: [...earlier, ...journal.take()],
  });
  if (settled.kind === 'done') return { kind: 'paid', record: settled.record };
  journal.putBack(earlier);
  // The write may have happened, and the request has not left. The money has moved: no time is safe for signing anew.
  const facts = { transaction, reason: REQUEST_NOT_WRITTEN };
  return { ...(await leaveUncertain(ledger, record, new Unwritten('settled', settled), facts)), resignSafe: false };
}

async function closeRefused(
  ledger: PaymentLedger,
  { journal }: Order,
  record: PaymentRecord,
  { reason, transaction }: Extract<Settlement, { kind: 'refused' }>,
): Promise<Sale> {
  const facts = { reason, ...transactionFact(transaction) };
  const earlier = journal.take();
  recordRefusal(journal, reason, transaction);
  const events = [...earlier, ...journal.take()];
  const refused = await write(ledger, { ...holder(record), to: 'refused', leaseMs: 0, facts, events });
  if (refused.kind === 'done') return { kind: 'refused', phase: 'settle', recorded: true, ...facts };
  journal.putBack(earlier);
  return leaveUncertain(ledger, record, new Unwritten('refused', refused), transactionFact(transaction));
}

function transactionFact(transaction: string | undefined): PaymentFacts {
  return transaction === undefined ? {} : { transaction };
}

/** A refused proof in the call's journal. */
export function recordRefusal(journal: Journal, reason: string, transaction: string | undefined): void {
  const data = transaction === undefined ? { reason } : { reason, transactionHash: transaction };
  journal.record('payment.rejected', { status: 'error', paymentProvider: 'x402', data });
}

/** The outcome is known and could not be written; for the log. */
class Unwritten extends Error {
  constructor(outcome: string, answer: { readonly kind: string; readonly cause?: unknown }) {
    super(`${outcome}, but the ledger answered ${answer.kind}`, { cause: answer.cause });
    this.name = 'Unwritten';
  }
}

function write(
  ledger: PaymentLedger,
  command: Advance,
): Promise<Advanced | { readonly kind: 'unwritten'; readonly cause: unknown }> {
  return persist(() => ledger.advance(command));
}
