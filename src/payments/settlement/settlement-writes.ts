/**
 * The writes of one settlement, in their order: `settling` before anything is sent, the signed
 * transaction before its broadcast, and the outcome. settle.ts decides, these functions write.
 */

import type { Journal } from '../../events/journal.ts';
import type { Time } from '../../time/time.ts';
import type {
  Advance,
  Advanced,
  KeptAnswer,
  PaymentFacts,
  PaymentLedger,
  PaymentRecord,
  Reservation,
  Reserve,
} from '../ledger/ledger.ts';
import {
  ANSWER_KEPT,
  type Delivery,
  REQUEST_MAY_BE_WRITTEN,
  REQUEST_NOT_WRITTEN,
  receiptOf,
} from '../ledger/payment-receipt.ts';
import { RECORD_RETENTION_MS, reserve } from '../ledger/table.ts';
import type { Settled, Settlement, SignedTransaction, Withdrawn, Worthless } from '../rail.ts';
import { tooLateFrom } from '../x402/wire/proof.ts';
import {
  fencingToken,
  LEASE_MS,
  lookAgainMs,
  mayStandAfter,
  passed,
  persist,
  type Unwritten,
  windowEndMs,
} from './attempt.ts';
import { SafeToRechallenge } from './safe-to-rechallenge.ts';
import type { SettlementRequest, StepResult, Uncertain } from './settlement-request.ts';

const VERIFIED = { status: 'ok', paymentProvider: 'x402' } as const;

/** What the writes of one attempt to settle need. */
export interface AttemptContext {
  readonly ledger: PaymentLedger;
  readonly time: Time;
  readonly request: SettlementRequest;
}

/**
 * Claims a payment whose proof the rail has verified: a new record begins as `settling`.
 * `uncertain`: the claim may stand, and then a reconciler settles it.
 * @throws when the store is silent and the claim certainly never left
 */
export async function claimVerified(
  context: AttemptContext,
  asked: Omit<Reserve, 'verified'>,
): Promise<Reservation | Uncertain> {
  const { ledger, time, request } = context;
  const { journal } = request;
  const earlier = journal.take();
  journal.record('payment.verified', VERIFIED);
  const verified = { untilMs: tooLateFrom(asked.terms.validBefore), events: [...earlier, ...journal.take()] };
  const command: Reserve = { ...asked, verified };
  const first = await ledger.reserve(command).catch((cause: unknown) => {
    if (mayStandAfter(cause)) return undefined;
    journal.putBack(earlier);
    throw cause;
  });
  const claimed = first ?? (await persist(() => ledger.reserve(command), time));
  if (!isBegun(claimed)) journal.putBack(earlier);
  if (claimed.kind !== 'unwritten') return claimed;
  const { record } = reserve(undefined, command, Date.now());
  if (record === undefined) throw new Error('a claim without record');
  return leaveUncertain(context, record, claimed.cause);
}

/** Whether a claim made a new record that is `settling`: each take-over has a higher fence. */
export function isBegun(
  claimed: Reservation | Uncertain | Unwritten,
): claimed is Extract<Reservation, { readonly kind: 'granted' }> {
  return claimed.kind === 'granted' && claimed.record.state === 'settling' && claimed.record.fence === 1;
}

/**
 * Writes `settling`, and then runs the step that may move money. When the write may stand although
 * the store did not confirm it, a reconciler may settle: then the outcome is uncertain.
 * @param begun `verified`: the rail verified the proof in this attempt, which is an event;
 *   `answer`: the backend's, kept for its buyer in the same write
 * @throws when the store is silent and nothing was written
 */
export async function beginSettling(
  context: AttemptContext,
  record: PaymentRecord,
  { verified = false, answer }: { readonly verified?: boolean; readonly answer?: KeptAnswer },
  then: (settling: PaymentRecord) => Promise<StepResult>,
): Promise<StepResult> {
  const { journal } = context.request;
  const earlier = journal.take();
  if (verified) journal.record('payment.verified', VERIFIED);
  const events = [...earlier, ...journal.take()];
  const kept = answer === undefined ? {} : keptAnswer(record, answer);
  const command = { ...fencingToken(record), to: 'settling', leaseMs: LEASE_MS, events, ...kept } as const;
  const settling = await persist(() => context.ledger.advance(command), context.time);
  if (settling.kind === 'done') {
    passed('settling', record.payId);
    return orUncertain(context, settling.record, () => then(settling.record));
  }
  journal.putBack(earlier);
  if (settling.kind === 'unwritten') {
    if (settling.mayStand) return leaveUncertain(context, record, settling.cause);
    throw settling.cause;
  }
  if (settling.kind === 'illegal') throw new Error(`illegal transition ${settling.state} -> settling`);
  return { kind: 'in_flight' };
}

/**
 * Writes `worked` and keeps the backend's answer for its buyer. Undefined: another attempt has the
 * record.
 * @throws when the store is silent: nothing was taken, and the backend worked in vain
 */
export async function writeWorked(
  { ledger, time, request: { journal } }: AttemptContext,
  record: PaymentRecord,
  answer: KeptAnswer,
): Promise<PaymentRecord | undefined> {
  const events = journal.take();
  const kept = keptAnswer(record, answer);
  const command = { ...fencingToken(record), to: 'worked', leaseMs: LEASE_MS, events, ...kept } as const;
  const worked = await persist(() => ledger.advance(command), time);
  if (worked.kind === 'done') {
    passed('worked', record.payId);
    return worked.record;
  }
  journal.putBack(events);
  if (worked.kind === 'unwritten') throw worked.cause;
  return undefined;
}

/** Keeps an answer for the present retention of its record, paid or not. */
function keptAnswer(
  { validBefore, changedAt }: PaymentRecord,
  answer: KeptAnswer,
): Required<Pick<Advance, 'facts' | 'keeping'>> {
  const forMs = Math.max(validBefore * 1_000 - changedAt, 0) + RECORD_RETENTION_MS;
  return { facts: { answered: answer.status, reason: ANSWER_KEPT }, keeping: { answer, forMs } };
}

/**
 * Keeps a signed transaction before it is sent, so that a take-over finds it. The returned function
 * throws when the transaction could not be kept: nothing may be sent then.
 */
export function writeAhead(
  { ledger }: AttemptContext,
  record: PaymentRecord,
): (transaction: SignedTransaction) => Promise<void> {
  return async ({ hash, raw }) => {
    const facts = { transaction: hash, ...(raw === undefined ? {} : { rawTransaction: raw }) };
    const noted = await ledger.note({ ...fencingToken(record), facts, leaseMs: LEASE_MS });
    if (noted.kind !== 'done') throw new Error(`write-ahead refused: ${noted.kind}`);
    passed('signed', record.payId);
  };
}

/**
 * Writes the outcome of a settlement. From here on a store that fails makes the outcome uncertain,
 * never a 402: money may have moved, and the same proof must find the record again.
 * @param facts of a payment that the store had lost
 */
export async function recordOutcome(
  context: AttemptContext,
  record: PaymentRecord,
  settlement: Settlement,
  facts: Pick<PaymentFacts, 'recovered' | 'tokenDigest'> = {},
): Promise<StepResult> {
  switch (settlement.kind) {
    case 'settled':
      return writeSettled(context, record, settlement, facts);
    case 'refused':
      return writeRefused(context, record, settlement);
    case 'withdrawn':
      return writeWithdrawn(context, record, settlement);
    default:
      return leaveUncertain(context, record, settlement.cause, transactionFact(settlement.transaction));
  }
}

async function writeSettled(
  context: AttemptContext,
  record: PaymentRecord,
  { evidence, transaction }: Settled,
  recovery: Pick<PaymentFacts, 'recovered' | 'tokenDigest'>,
): Promise<StepResult> {
  const { journal, elapsedMs } = context.request;
  const { network, amount, currency, payer, answered } = record;
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
  const progress = (otherwise: string): string => (answered === undefined ? otherwise : ANSWER_KEPT);
  const command = {
    ...fencingToken(record),
    to: 'settled',
    leaseMs: LEASE_MS,
    facts: { ...known, ...recovery, evidence, reason: progress(REQUEST_MAY_BE_WRITTEN) },
    receipt: receiptOf(paid, { settledAt: now, at: now, durationMs, delivery: waitingAnswer(answered) }),
    events: [...earlier, ...journal.take()],
  } as const;
  const settled = await persist(() => context.ledger.advance(command), context.time);
  if (settled.kind === 'done') {
    passed('settled', record.payId);
    return { kind: 'paid', record: settled.record, kept: undefined };
  }
  journal.putBack(earlier);
  // Another attempt took the record over while this one was slow: that one decides, and this call
  // may wait for it.
  if (settled.kind === 'fenced' || settled.kind === 'illegal') return { kind: 'in_flight' };
  // The write may stand, and the request has not left.
  const facts = { ...known, reason: progress(REQUEST_NOT_WRITTEN) };
  return leaveUncertain(context, record, new OutcomeUnwritten('settled', settled), facts);
}

/** The delivery in a receipt for an answer that was there before the money moved. */
function waitingAnswer(status: number | undefined): Delivery | undefined {
  if (status === undefined) return undefined;
  return { backendStatus: status, deliveredAt: undefined, failure: undefined, answerKept: true };
}

async function writeRefused(
  context: AttemptContext,
  record: PaymentRecord,
  { reason, evidence, transaction }: Worthless,
): Promise<StepResult> {
  const { journal } = context.request;
  const facts = { reason, evidence, ...transactionFact(transaction) };
  const earlier = journal.take();
  recordRejection(journal, reason, transaction);
  const events = [...earlier, ...journal.take()];
  const command = { ...fencingToken(record), to: 'refused', leaseMs: 0, facts, events } as const;
  const refused = await persist(() => context.ledger.advance(command), context.time);
  if (refused.kind === 'done')
    return evidence === 'unclaimed'
      ? { kind: 'spent', state: 'used' }
      : { kind: 'refused', owed: SafeToRechallenge.refused(refused.record, true, true) };
  journal.putBack(earlier);
  if (refused.kind === 'fenced' || refused.kind === 'illegal') return { kind: 'in_flight' };
  return leaveUncertain(context, record, new OutcomeUnwritten('refused', refused), transactionFact(transaction));
}

/** Nothing is under way: the record waits for the same proof, and past its window for the chain. */
async function writeWithdrawn(
  context: AttemptContext,
  record: PaymentRecord,
  { reason, cause, transaction }: Withdrawn,
): Promise<StepResult> {
  const facts = { reason, ...transactionFact(transaction) };
  const againMs = windowEndMs(record);
  const command = { ...fencingToken(record), to: 'withdrawn', leaseMs: 0, againMs, facts, events: [] } as const;
  const withdrawn = await persist(() => context.ledger.advance(command), context.time);
  if (withdrawn.kind === 'done')
    return reason === 'relayer_unfunded' ? { kind: 'postponed', reason, cause } : { kind: 'unavailable', cause };
  if (withdrawn.kind === 'fenced' || withdrawn.kind === 'illegal') return { kind: 'in_flight' };
  return leaveUncertain(context, record, new OutcomeUnwritten('withdrawn', withdrawn), transactionFact(transaction));
}

/** Keeps the hash, if any, and gives the lease up, so that the same proof may ask again at once. */
export async function leaveUncertain(
  { ledger }: AttemptContext,
  record: PaymentRecord,
  cause: unknown,
  facts: PaymentFacts = {},
): Promise<Uncertain> {
  try {
    await ledger.note({ ...fencingToken(record), facts, leaseMs: 0, againMs: lookAgainMs(record) });
  } catch {
    // The lease ends by itself; the answer stays "uncertain".
  }
  return { kind: 'uncertain', record, cause, ...transactionFact(facts.transaction ?? record.transaction) };
}

/** Runs a step of a settlement that may have begun: each failure leaves the outcome uncertain. */
export async function orUncertain(
  context: AttemptContext,
  record: PaymentRecord,
  step: () => Promise<StepResult>,
): Promise<StepResult> {
  try {
    return await step();
  } catch (cause) {
    return leaveUncertain(context, record, cause);
  }
}

/** Records a refused proof in the call's journal. */
export function recordRejection(journal: Journal, reason: string, transaction: string | undefined): void {
  const data = transaction === undefined ? { reason } : { reason, transactionHash: transaction };
  journal.record('payment.rejected', { status: 'error', paymentProvider: 'x402', data });
}

function transactionFact(transaction: string | undefined): Pick<PaymentFacts, 'transaction'> {
  return transaction === undefined ? {} : { transaction };
}

/** The outcome is known and could not be written; for the log. */
class OutcomeUnwritten extends Error {
  constructor(outcome: string, answer: Exclude<Advanced, { kind: 'done' }> | { kind: 'unwritten'; cause: unknown }) {
    super(`${outcome}, but the ledger answered ${answer.kind}`, {
      cause: 'cause' in answer ? answer.cause : undefined,
    });
    this.name = 'Unwritten';
  }
}
