/**
 * Handles calls whose authorization has a record already, or a payment that only the chain shows:
 * answers from the record, resumes its delivery, finds whose payment it is, and checks the mandate
 * of a reservation that settle.ts goes on with.
 */

import { readStoredMandate } from '../../mandates/stored-mandate.ts';
import type {
  PaymentFacts,
  PaymentLedger,
  PaymentRecord,
  PaymentTerms,
  Refusal,
  Reservation,
} from '../ledger/ledger.ts';
import {
  ANSWER_KEPT,
  REQUEST_MAY_BE_WRITTEN,
  REQUEST_NOT_WRITTEN,
  receiptOf,
  uncertainReceipt,
} from '../ledger/payment-receipt.ts';
import { RETRY_WINDOW_MS } from '../ledger/table.ts';
import type { Settled } from '../rail.ts';
import { VALID_BEFORE_EXCESS_SECONDS } from '../x402/wire/proof.ts';
import type { PaymentRail } from '../x402/wire/types.ts';
import { deliverAgainMs, fencingToken, LEASE_MS, MOST_SENDINGS, persist, windowLeftMs } from './attempt.ts';
import { SafeToRechallenge } from './safe-to-rechallenge.ts';
import type { SettlementRequest, SettlementResult, StepResult } from './settlement-request.ts';
import type { AttemptContext } from './settlement-writes.ts';
import { readForChain, readStoredProof } from './terms.ts';

/**
 * Margin between two clocks of whole milliseconds. A call that came before the answer was ready has
 * joined it, also when its turn came afterwards: its answer is no replay.
 */
export const CLOCK_GRAIN_MS = 2;

/**
 * The rows of contract 4.3 for an authorization that is not granted to this call. `waitedMs`: the
 * age of the call when it asked the ledger. `answerOf`: the payment that its token names.
 */
export async function answerExisting(
  ledger: Pick<PaymentLedger, 'kept'>,
  reservation: Exclude<Reservation, { kind: 'granted' }>,
  { keyDigest, tokenDigest }: Pick<PaymentTerms, 'keyDigest' | 'tokenDigest'>,
  call: { readonly joined: boolean; readonly waitedMs: number; readonly answerOf?: string | undefined },
): Promise<SettlementResult> {
  if (reservation.kind === 'refused')
    return { kind: 'refused', owed: SafeToRechallenge.refusedBefore(reservation, call.answerOf) };
  if (reservation.kind === 'mandate') return { kind: 'mandate_used', reason: reservation.reason };
  const { kind, record } = reservation;
  const hasKey = keyDigest !== undefined && keyDigest === record.keyDigest;
  const hasToken = tokenDigest !== undefined && tokenDigest === record.tokenDigest;
  const isBuyer = hasKey || hasToken;
  const wasHere = (endedMs: number): boolean => call.joined || call.waitedMs - endedMs > CLOCK_GRAIN_MS;
  switch (kind) {
    case 'in_flight':
      // A proof without its secret joins nothing: it is public, and the answer is the buyer's.
      return isBuyer ? { kind: 'in_flight', leaseLeftMs: reservation.leaseLeftMs } : { kind: 'in_flight', alone: true };
    case 'conflict':
      return hasKey ? { kind: 'conflict' } : { kind: 'spent', state: 'used', record };
    case 'guarded':
      // Another attempt works on the record, or the record waits for its buyer. A call without the
      // secret can neither join nor collect.
      return record.state === 'undelivered'
        ? { kind: 'spent', state: record.state, guarded: true, record }
        : { kind: 'in_flight', alone: true };
    case 'completed':
      return answerCompleted(ledger, record, isBuyer, wasHere(reservation.endedMs));
  }
}

async function answerCompleted(
  ledger: Pick<PaymentLedger, 'kept'>,
  record: PaymentRecord,
  isBuyer: boolean,
  joined: boolean,
): Promise<SettlementResult> {
  switch (record.state) {
    case 'refused':
      if (record.evidence === 'unclaimed') return { kind: 'spent', state: 'used' };
      return { kind: 'refused', owed: SafeToRechallenge.refused(record, false, isBuyer) };
    case 'delivered': {
      // The proof is public once it is on chain: only a call with the secret gets the answer.
      const kept = isBuyer ? await ledger.kept(record.payId) : undefined;
      if (kept !== undefined) return { kind: 'replayed', record, kept, joined };
      return { kind: 'spent', state: 'delivered', record };
    }
    case 'unresolved':
      return { kind: 'uncertain', record, cause: 'it waits for an operator to decide', ...transactionOf(record) };
    case 'refundDue':
    case 'refunding':
    case 'refunded':
      return { kind: 'spent', state: record.state, record };
    default:
      return { kind: 'in_flight' };
  }
}

function transactionOf({ transaction }: PaymentRecord): { readonly transaction?: string } {
  return transaction === undefined ? {} : { transaction };
}

/**
 * The money moved earlier and nothing was delivered: the call collects now, unless the backend
 * might do the work twice, or bytes of its answers have left too often. `joined`: this call has
 * just waited for a delivery that failed; if each copy tried again, the backend would get them all.
 */
export async function resumeDelivery(
  context: AttemptContext,
  record: PaymentRecord,
  joined: boolean,
): Promise<StepResult> {
  const { ledger, request } = context;
  const hasAnswer = record.reason === ANSWER_KEPT || record.answered !== undefined;
  const kept = hasAnswer ? await ledger.kept(record.payId) : undefined;
  if (kept !== undefined) return collect(context, record, {}, kept);
  const mayRun =
    (request.repeatable || record.reason === REQUEST_NOT_WRITTEN) && (record.sendings ?? 0) < MOST_SENDINGS;
  if (joined && record.state === 'undelivered') {
    const parked = { leaseMs: 0, againMs: deliverAgainMs(record.tries), ...uncertainReceipt(record) };
    await ledger.note({ ...fencingToken(record), ...parked });
    return { kind: 'failed', record, retryable: mayRun };
  }
  if (mayRun) {
    // Written before the request leaves, so that it cannot leave twice after a crash.
    return collect(context, record, { reason: REQUEST_MAY_BE_WRITTEN }, undefined);
  }
  return leaveToBuyer(context, record);
}

async function collect(
  { ledger, time }: AttemptContext,
  record: PaymentRecord,
  facts: PaymentFacts,
  kept: Extract<StepResult, { kind: 'paid' }>['kept'],
): Promise<StepResult> {
  const command = { ...fencingToken(record), facts, leaseMs: LEASE_MS, ...uncertainReceipt(record) };
  const written = await persist(() => ledger.note(command), time);
  if (written.kind === 'done') return { kind: 'paid', record: written.record, kept };
  if (written.kind !== 'unwritten') return { kind: 'in_flight' };
  // The write may stand, and the request did not leave.
  const before = record.reason === undefined ? {} : { reason: record.reason };
  await ledger.note({ ...fencingToken(record), facts: before, leaseMs: 0 }).catch(() => undefined);
  throw written.cause;
}

/** Nothing may be sent again, so the reconciler need not look before the window ends. */
async function leaveToBuyer({ ledger, time, request }: AttemptContext, record: PaymentRecord): Promise<StepResult> {
  const parked = { ...fencingToken(record), leaseMs: 0, againMs: windowLeftMs(record) };
  if (record.state === 'undelivered') {
    await ledger.note({ ...parked, ...uncertainReceipt(record) });
    return { kind: 'spent', state: 'undelivered', record };
  }
  // The attempt that was to deliver it died, and no receipt states that yet.
  const at = new Date();
  const command = {
    ...parked,
    to: 'undelivered',
    receipt: receiptOf(record, {
      settledAt: new Date(record.settledAt ?? at),
      at,
      durationMs: request.elapsedMs(),
      delivery: { backendStatus: 0, deliveredAt: undefined, failure: { code: 'interrupted' } },
    }),
    events: request.journal.take(),
  } as const;
  const written = await persist(() => ledger.advance(command), time);
  if (written.kind !== 'done') request.journal.putBack(command.events);
  if (written.kind === 'unwritten') throw written.cause;
  return written.kind === 'done'
    ? { kind: 'spent', state: 'undelivered', record: written.record }
    : { kind: 'in_flight' };
}

/**
 * Whether a reservation that an earlier attempt left has another mandate than this call, or none.
 * Going on would settle under a mandate that was not checked for this call, and would not use the
 * checked one: the call has to begin anew.
 */
export function isUnderOtherMandate(
  reserved: Pick<PaymentRecord, 'mandate'>,
  brought: Pick<PaymentTerms, 'mandate'>,
): boolean {
  // One mandate that was checked twice is stored with two times.
  return brought.mandate !== undefined && identityOf(reserved.mandate) !== identityOf(brought.mandate);
}

/** The ids of a claim that may be used once (closed mandates, checkout), and its open mandates. */
function identityOf(mandate: string | undefined): string | undefined {
  const claim = mandate === undefined ? undefined : readStoredMandate(mandate)?.claim;
  return claim && JSON.stringify([claim.once, claim.open.map(({ id }) => id)]);
}

/** A refusal of a proof, for its copies that come later: they get the same answer. */
export function rememberedRefusal(
  { proof }: Pick<SettlementRequest, 'proof'>,
  record: PaymentRecord,
  reason: string,
): Refusal | undefined {
  if (proof === undefined) return undefined;
  // The window check accepts no proof that lives longer.
  const atMostMs = (readStoredProof(record).requirements.maxTimeoutSeconds + VALID_BEFORE_EXCESS_SECONDS) * 1_000;
  return { proof, reason, until: record.validBefore * 1_000, atMostMs };
}

/** Rules of the configuration for payments that no record of this store explains. */
interface PayeeRules {
  /**
   * True: nothing else is paid to this payee. Otherwise another store or seller may be paid there:
   * a payment counts only if this store caused its transaction, and a payment without a record only
   * if our own transaction has the digest of this call's token in its calldata.
   */
  readonly payToExclusive: boolean;
  /** Whether the asset is offered now. */
  readonly offered: boolean;
  /** Whether a payment that no record has is delivered. */
  readonly onStoreLoss: 'deliver' | 'refuse';
}

/** Parts that decide whose payment the chain shows (contract 4.3). */
export interface PayeeParts {
  readonly rail: PaymentRail;
  /** The rules for payments in this asset. */
  readonly payeeRules: (paid: Pick<PaymentRecord, 'network' | 'asset'>) => PayeeRules;
  /** Gets each payment that is not known to be of the buyer who brought the proof. */
  readonly onUnclaimed?: (facts: { readonly payId: string; readonly transaction: string | undefined }) => void;
}

/** The owner of a payment that no record has; `unknown`: the node did not answer. */
type StoreLossClaim =
  | { readonly kind: 'theirs'; readonly facts: Pick<PaymentFacts, 'recovered' | 'tokenDigest'> }
  | { readonly kind: 'unclaimed' }
  | { readonly kind: 'unknown'; readonly cause: string };

/**
 * Finds whose a lost payment is; a payment that was sent back is no buyer's any more. A token
 * proves a 402 of this gateway and not the buyer, because every caller may fetch one beforehand;
 * only a digest in our own transaction shows the token of a payment. `tokenDigest`: of the call
 * that brings the proof.
 */
export async function claimOfLost(
  { rail, payeeRules, onUnclaimed }: PayeeParts,
  record: PaymentRecord,
  { transaction }: Settled,
  { tokenDigest }: Pick<PaymentTerms, 'tokenDigest'>,
): Promise<StoreLossClaim> {
  const { payId, keyDigest, reservedAt, validBefore } = record;
  const withinWindow = reservedAt <= validBefore * 1_000 + RETRY_WINDOW_MS;
  const { payToExclusive, onStoreLoss, offered } = payeeRules(record);
  const { proof, requirements } = readForChain(record);
  let mark: string | undefined;
  let isTheirs: boolean;
  try {
    mark = await rail.markOf?.(transaction, proof, requirements);
    // In an asset that is not offered now, a buyer may have sent the money without a 402.
    isTheirs = mark === undefined ? payToExclusive && offered : mark === tokenDigest;
    isTheirs &&= onStoreLoss !== 'refuse' && withinWindow;
    // Asked last: it is a question to the chain of its own.
    isTheirs &&= (await rail.sentBack?.(proof, requirements)) !== true;
  } catch (cause) {
    return { kind: 'unknown', cause: String(cause) };
  }
  if (!isTheirs) {
    onUnclaimed?.({ payId, transaction });
    return { kind: 'unclaimed' };
  }
  // A token that is too old for a new purchase is the secret of this one all the same.
  const secret = mark === undefined || keyDigest !== undefined ? {} : { tokenDigest: mark };
  return { kind: 'theirs', facts: { recovered: 'chain', ...secret } };
}
