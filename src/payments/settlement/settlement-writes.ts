import type { Journal } from '../../events/journal.ts';
import type { Time } from '../../time/time.ts';
import {
  type Advanced,
  fencingToken,
  type PaymentFacts,
  type PaymentLedger,
  type PaymentRecord,
} from '../ledger/ledger.ts';
import { REQUEST_MAY_BE_WRITTEN, REQUEST_NOT_WRITTEN, receiptOf } from '../ledger/payment-receipt.ts';
import type { Settled, Settlement, SignedTransaction, Withdrawn, Worthless } from '../rail.ts';
import { passed } from '../steps.ts';
import { LEASE_MS } from './reservations.ts';
import { lookAgainMs, persist, windowEndMs } from './retry-policy.ts';
import { SafeToRechallenge } from './safe-to-rechallenge.ts';
import type { StepResult, SettlementRequest, Uncertain } from './settlement-request.ts';

/** What the steps that end a settlement share. */
export interface LedgerContext {
  readonly ledger: PaymentLedger;
  readonly time: Time;
}

/**
 * Writes the outcome of a settlement down. From here on a store that fails makes the outcome
 * uncertain, never a 402: money may have moved, and the record that says so must be found again by
 * the same proof.
 */
export async function recordOutcome(
  books: LedgerContext,
  order: SettlementRequest,
  record: PaymentRecord,
  settlement: Settlement,
  facts: Pick<PaymentFacts, 'recovered' | 'tokenDigest'> = {},
): Promise<StepResult> {
  switch (settlement.kind) {
    case 'settled':
      return writeSettled(books, order, record, settlement, facts);
    case 'refused':
      return writeRefused(books, order, record, settlement);
    case 'withdrawn':
      return writeWithdrawn(books, record, settlement);
    default:
      return leaveUncertain(books, record, settlement.cause, transactionFact(settlement.transaction));
  }
}

/**
 * Keeps the hash if there is one and gives the lease up, so that the same proof may ask again at
 * once.
 */
export async function leaveUncertain(
  { ledger }: LedgerContext,
  record: PaymentRecord,
  cause: unknown,
  facts: PaymentFacts = {},
): Promise<Uncertain> {
  try {
    await ledger.note({ ...fencingToken(record), facts, leaseMs: 0, againMs: lookAgainMs(record) });
  } catch {
    // The lease ends by itself; what matters is that the answer stays "uncertain".
  }
  const transaction = facts.transaction ?? record.transaction;
  return { kind: 'uncertain', record, cause, ...transactionFact(transaction) };
}

async function writeSettled(
  books: LedgerContext,
  { journal, elapsedMs }: SettlementRequest,
  record: PaymentRecord,
  { evidence, transaction }: Settled,
  recovery: Pick<PaymentFacts, 'recovered' | 'tokenDigest'>,
): Promise<StepResult> {
  const { network, amount, currency, payer } = record;
  const durationMs = elapsedMs();
  const known = transactionFact(transaction ?? record.transaction);
  const earlier = journal.take();
  journal.record('payment.settled', {
    status: 'ok',
    paymentProvider: 'x402',
    durationMs,
    data: { transaction: known.transaction ?? '', network, amount, currency, payer },
  });
  const now = new Date();
  const paid = { ...record, ...known, ...recovery, evidence };
  const command = {
    ...fencingToken(record),
    to: 'settled',
    leaseMs: LEASE_MS,
    facts: { ...known, ...recovery, evidence, reason: REQUEST_MAY_BE_WRITTEN },
    receipt: receiptOf(paid, { settledAt: now, at: now, durationMs, delivery: undefined }),
    events: [...earlier, ...journal.take()],
  } as const;
  const settled = await persist(() => books.ledger.advance(command), books.time);
  if (settled.kind === 'done') {
    passed('settled', record.payId);
    return { kind: 'paid', record: settled.record, kept: undefined };
  }
  journal.putBack(earlier);
  // Somebody took this over while it was slow: that attempt has the say, and this call may wait for
  // it.
  if (settled.kind === 'fenced' || settled.kind === 'illegal') return { kind: 'in_flight' };
  // The write may have happened, and the request has not left.
  const facts = { ...known, reason: REQUEST_NOT_WRITTEN };
  return leaveUncertain(books, record, new Unwritten('settled', settled), facts);
}

async function writeRefused(
  books: LedgerContext,
  { journal }: SettlementRequest,
  record: PaymentRecord,
  { reason, evidence, transaction }: Worthless,
): Promise<StepResult> {
  const facts = { reason, evidence, ...transactionFact(transaction) };
  const earlier = journal.take();
  recordRejection(journal, reason, transaction);
  const events = [...earlier, ...journal.take()];
  const command = { ...fencingToken(record), to: 'refused', leaseMs: 0, facts, events } as const;
  const refused = await persist(() => books.ledger.advance(command), books.time);
  if (refused.kind === 'done') return { kind: 'refused', owed: SafeToRechallenge.refused(refused.record, true) };
  journal.putBack(earlier);
  if (refused.kind === 'fenced' || refused.kind === 'illegal') return { kind: 'in_flight' };
  return leaveUncertain(books, record, new Unwritten('refused', refused), transactionFact(transaction));
}

/**
 * Nothing is under way: the record waits for the same proof, and at the end of its window for the
 * chain.
 */
async function writeWithdrawn(
  books: LedgerContext,
  record: PaymentRecord,
  { cause, transaction }: Withdrawn,
): Promise<StepResult> {
  const reason = 'relayer_unfunded';
  const facts = { reason, ...transactionFact(transaction) };
  const againMs = windowEndMs(record);
  const command = { ...fencingToken(record), to: 'withdrawn', leaseMs: 0, againMs, facts, events: [] } as const;
  const withdrawn = await persist(() => books.ledger.advance(command), books.time);
  if (withdrawn.kind === 'done') return { kind: 'postponed', reason, cause };
  if (withdrawn.kind === 'fenced' || withdrawn.kind === 'illegal') return { kind: 'in_flight' };
  return leaveUncertain(books, record, new Unwritten('withdrawn', withdrawn), transactionFact(transaction));
}

function transactionFact(transaction: string | undefined): Pick<PaymentFacts, 'transaction'> {
  return transaction === undefined ? {} : { transaction };
}

/** A refused proof in the call's journal. */
export function recordRejection(journal: Journal, reason: string, transaction: string | undefined): void {
  const data = transaction === undefined ? { reason } : { reason, transactionHash: transaction };
  journal.record('payment.rejected', { status: 'error', paymentProvider: 'x402', data });
}

/** The outcome is known and could not be written; for the log. */
class Unwritten extends Error {
  constructor(outcome: string, answer: Exclude<Advanced, { kind: 'done' }> | { kind: 'unwritten'; cause: unknown }) {
    super(`${outcome}, but the ledger answered ${answer.kind}`, {
      cause: 'cause' in answer ? answer.cause : undefined,
    });
    this.name = 'Unwritten';
  }
}

/**
 * The write before anything is sent, and then what it is for. When the write may stand although
 * nobody confirmed it, a reconciler may settle what this call did not: then the outcome is open.
 * `verified`: whether the rail was asked and said yes, which is an event.
 * @throws when the store is silent and nothing was written
 */
export async function beginSettling(
  books: LedgerContext,
  { journal }: Pick<SettlementRequest, 'journal'>,
  record: PaymentRecord,
  verified: boolean,
  then: (settling: PaymentRecord) => Promise<StepResult>,
): Promise<StepResult> {
  const earlier = journal.take();
  if (verified) journal.record('payment.verified', { status: 'ok', paymentProvider: 'x402' });
  const events = [...earlier, ...journal.take()];
  const step = { ...fencingToken(record), to: 'settling', leaseMs: LEASE_MS, events } as const;
  const settling = await persist(() => books.ledger.advance(step), books.time);
  if (settling.kind === 'done') {
    passed('settling', record.payId);
    return orUncertain(books, settling.record, () => then(settling.record));
  }
  journal.putBack(earlier);
  if (settling.kind === 'unwritten') {
    if (settling.mayStand) return leaveUncertain(books, record, settling.cause);
    throw settling.cause;
  }
  if (settling.kind === 'illegal') throw new Error(`illegal transition ${settling.state} -> settling`);
  return { kind: 'in_flight' };
}

/**
 * Once a settlement may have begun, whatever fails leaves its outcome open: it is never an error of
 * this call alone.
 */
export async function orUncertain(
  books: LedgerContext,
  record: PaymentRecord,
  step: () => Promise<StepResult>,
): Promise<StepResult> {
  try {
    return await step();
  } catch (cause) {
    return leaveUncertain(books, record, cause);
  }
}

/**
 * Keeps a signed transaction before it is sent, so that whoever takes over can find it. The result
 * throws when it could not be kept: then nothing may be sent.
 */
export function writeAhead(
  ledger: Pick<PaymentLedger, 'note'>,
  record: PaymentRecord,
): (transaction: SignedTransaction) => Promise<void> {
  return async ({ hash, raw }) => {
    const facts = { transaction: hash, rawTransaction: raw };
    const noted = await ledger.note({ ...fencingToken(record), facts, leaseMs: LEASE_MS });
    if (noted.kind !== 'done') throw new Error(`write-ahead refused: ${noted.kind}`);
    passed('signed', record.payId);
  };
}
