/**
 * Sends a payment back that is due for a refund. The record moves to `refunding` before anything is
 * sent, and to `refunded` once the chain shows the transfer; a run that dies in between is finished
 * by the next one.
 */

import { REAL_TIME, type Time } from '../../../time/time.ts';
import type { Advance, PaymentLedger, PaymentRecord } from '../../ledger/ledger.ts';
import { receiptOf } from '../../ledger/payment-receipt.ts';
import { fencingToken, persist } from '../../settlement/attempt.ts';
import { endCollecting } from '../../settlement/reconciler.ts';
import type { Chain } from '../chain/chain.ts';
import { nodeFailure, RpcRefusal } from '../chain/node.ts';
import { transferCall } from '../evm/eip3009.ts';
import { exclusionOf } from '../local/relayer.ts';
import { whyElsewhere } from '../wire/offers.ts';
import type { Eip3009Authorization } from '../wire/types.ts';
import type { RefundSender, SignedRefund } from './sender.ts';
import { readPayment, readRefund, refundAuthorization } from './transfer.ts';

/** How long an authorization to send a payment back is valid, seconds. */
export const REFUND_LIFE_SECONDS = 3_600;
/** Longest wait of one run for a refund, milliseconds; the next run continues it. */
const WAIT_MS = 120_000;
/** `sent` resends after this time: a restarted node forgets pending transactions. */
const SENT_AGAIN_MS = 5_000;
/** Pauses between looks at the chain, milliseconds. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** Signs for the account that was paid. */
export interface PayeeSigner {
  /** Lower case 0x-hex. */
  readonly address: string;
  /** 65 bytes as 0x-hex, v 27 or 28. */
  sign(authorization: Eip3009Authorization): Promise<string>;
}

type RefundLedger = Pick<PaymentLedger, 'read' | 'reserve' | 'note' | 'advance'>;

/** The choices of an operator about a refund. */
interface RefundChoice {
  /** The payer denies the arrival of an answer that may have arrived. */
  readonly confirmed: boolean;
  /** Refunds an undelivered payment although its buyer may still collect the answer. */
  readonly now: boolean;
}

/** The ledger, the chain and the accounts that refunds use. */
export interface RefundParts {
  readonly ledger: RefundLedger;
  readonly chain: Chain;
  readonly terms: { readonly network: string; readonly asset: string };
  readonly signer: PayeeSigner;
  readonly sender: RefundSender;
  readonly time?: Time | undefined;
}

/**
 * - `refunded`: the chain shows the refund in `transaction`; `before`: another run had sent it.
 * - `left`: the command does not send this payment back, for the reason `why`.
 * - `pending`: the refund has no known end yet; the next run continues it.
 */
export type RefundOutcome =
  | { readonly kind: 'refunded'; readonly transaction: string; readonly before: boolean }
  | { readonly kind: 'left'; readonly why: string }
  | { readonly kind: 'pending'; readonly why: string };

/** The reason not to send a payment back; undefined where its refund is due. */
export function whyNotDue(
  record: PaymentRecord,
  terms: RefundParts['terms'],
  { confirmed, now }: RefundChoice,
): string | undefined {
  const { state, sending } = record;
  const isDue = state === 'refundDue' || state === 'refunding' || (now && state === 'undelivered');
  if (!isDue) return `it is ${state}, and only what is ${now ? 'undelivered or ' : ''}refundDue is sent back`;
  const elsewhere = whyElsewhere(record, [terms]);
  if (elsewhere !== undefined) return elsewhere;
  return sending === 'begun' && !confirmed
    ? 'its answer may have arrived: ask the payer, then name it with --confirm-uncertain'
    : undefined;
}

/** Resolves to the record if its refund is due; ends the collecting of an undelivered one. */
export async function dueRecord(
  { ledger, terms }: Pick<RefundParts, 'ledger' | 'terms'>,
  record: PaymentRecord,
  choice: RefundChoice,
): Promise<{ readonly kind: 'due'; readonly record: PaymentRecord } | Extract<RefundOutcome, { why: string }>> {
  const due = record.state === 'undelivered' ? await endCollecting(ledger, record) : record;
  if (due === undefined) return { kind: 'pending', why: 'a delivery to its buyer runs or has ended; run this again' };
  // Bytes of an answer may have left since `record` was read.
  const why = whyNotDue(due, terms, choice);
  return why === undefined ? { kind: 'due', record: due } : { kind: 'left', why };
}

export async function payRefund(parts: RefundParts, payId: string, choice: RefundChoice): Promise<RefundOutcome> {
  const { ledger, chain, terms, signer } = parts;
  const record = await ledger.read(payId);
  if (record === undefined) return { kind: 'left', why: 'its record is not in this store' };
  if (record.state === 'refunded') return refundedBefore(record);
  const why = whyNotDue(record, terms, choice);
  if (why !== undefined) return { kind: 'left', why };
  if (record.payee.toLowerCase() !== signer.address.toLowerCase())
    return { kind: 'left', why: `it was paid to ${record.payee}, and the key is of ${signer.address}` };
  const payment = await shownPayment(chain, record);
  if (payment.kind !== 'paid') return payment;
  const due = await dueRecord(parts, record, choice);
  return due.kind === 'due' ? sent(parts, due.record) : due;
}

/** The transaction that paid: a payment that the chain does not show is not sent back. */
export async function shownPayment(
  chain: Chain,
  record: PaymentRecord,
): Promise<RefundOutcome | { readonly kind: 'paid'; readonly transaction: string }> {
  const payment = await readPayment(chain, record);
  if (payment.kind === 'paid') return payment;
  if (payment.kind === 'worthless') return { kind: 'left', why: 'the chain shows that it was not paid' };
  return {
    kind: 'pending',
    why: `the chain does not show the payment: ${payment.kind === 'open' ? 'not made' : payment.cause}`,
  };
}

/** Sends a refund, again while it has no block, until the chain shows it or `WAIT_MS` is over. */
async function sent(parts: RefundParts, due: PaymentRecord): Promise<RefundOutcome> {
  const { chain, sender, time = REAL_TIME } = parts;
  const ends = time.now() + WAIT_MS;
  let record = due;
  let signed: SignedRefund | undefined;
  let sendAt = 0;
  let cause = 'it has no block yet';
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    const shown = await readRefund(chain, record);
    if (shown.kind === 'paid') return closeRefund(parts, record, shown.transaction, { before: signed === undefined });
    if (shown.kind === 'worthless')
      return { kind: 'left', why: 'the payee has cancelled it; send it by hand, then acg refunds record' };
    if (shown.kind === 'unknown') cause = shown.cause;
    else if (signed === undefined || shown.failed === true) {
      const begun = await begin(parts, record);
      if (begun.kind === 'again') ({ cause } = begun);
      else if (begun.kind !== 'begun') return begun;
      else {
        ({ record, signed } = begun);
        sendAt = time.now();
      }
    }
    if (signed !== undefined && shown.kind === 'open' && time.now() >= sendAt)
      try {
        await sender.send(signed);
        sendAt = time.now() + SENT_AGAIN_MS;
      } catch (error) {
        cause = nodeFailure(error);
        if (exclusionOf(error) === 'unfunded')
          return { kind: 'pending', why: `${sender.address} cannot pay the gas: ${cause}` };
        // After a refusal another try is signed; without an answer this one may be on its way.
        if (error instanceof RpcRefusal) signed = undefined;
      }
    if (time.now() >= ends) return { kind: 'pending', why: cause };
    await time.sleep(pause);
  }
}

type Begun =
  | { readonly kind: 'begun'; readonly record: PaymentRecord; readonly signed: SignedRefund }
  | { readonly kind: 'again'; readonly cause: string };

/** Signs, and notes the hash in the record before anything is sent. */
async function begin(parts: RefundParts, record: PaymentRecord): Promise<Begun | RefundOutcome> {
  const { signer, sender } = parts;
  const authorization = refundAuthorization(record, Math.floor(Date.now() / 1_000) + REFUND_LIFE_SECONDS);
  const call = transferCall(authorization, await signer.sign(authorization), 'account');
  let signed: SignedRefund;
  try {
    signed = await sender.sign(call);
  } catch (error) {
    // Another run may have sent the refund since the last look.
    if (error instanceof RpcRefusal && error.reverted && (await readRefund(parts.chain, record)).kind === 'paid')
      return { kind: 'again', cause: nodeFailure(error) };
    return { kind: 'pending', why: `nothing was sent: ${nodeFailure(error)}` };
  }
  const noted = await move(parts, record, { to: 'refunding', transaction: signed.hash });
  return noted.kind === 'moved' ? { kind: 'begun', record: noted.record, signed } : noted;
}

/**
 * Moves the record to `refunded`.
 * @param how `before`: an earlier run had sent the refund; `unchanged`: only while nothing else was
 * written to the record since it was read
 */
export async function closeRefund(
  parts: Pick<RefundParts, 'ledger' | 'time'>,
  record: PaymentRecord,
  transaction: string,
  { before, ...unchanged }: { readonly before: boolean } & Pick<Advance, 'unchanged'>,
): Promise<RefundOutcome> {
  const ended = await move(parts, record, { to: 'refunded', transaction, ...unchanged });
  return ended.kind === 'moved' ? { kind: 'refunded', transaction, before } : ended;
}

interface RefundMove extends Pick<Advance, 'unchanged'> {
  readonly to: 'refunding' | 'refunded';
  readonly transaction: string;
}

async function move(
  { ledger, time = REAL_TIME }: Pick<RefundParts, 'ledger' | 'time'>,
  record: PaymentRecord,
  { transaction, ...change }: RefundMove,
): Promise<{ readonly kind: 'moved'; readonly record: PaymentRecord } | RefundOutcome> {
  const { to } = change;
  const facts = refundFacts(record, to, transaction);
  const command = { ...fencingToken(record), ...change, leaseMs: 0, ...facts, events: [] };
  const written = await persist(() => ledger.advance(command), time);
  if (written.kind === 'done') return { kind: 'moved', record: written.record };
  if (written.kind === 'unwritten')
    return { kind: 'pending', why: `the store did not confirm ${to}: ${String(written.cause)}` };
  // Another run changed the record first.
  const now = await ledger.read(record.payId);
  if (now?.state === 'refunded') return refundedBefore(now);
  return { kind: 'pending', why: `it is ${now?.state ?? 'not in this store'} by now` };
}

/** The facts and the receipt that are written with a state of a refund. */
function refundFacts(record: PaymentRecord, status: 'refunding' | 'refunded', transaction: string) {
  const at = new Date();
  const settledAt = new Date(record.settledAt ?? at);
  const refund = { status, transaction, at: at.toISOString() };
  const refundDue = status === 'refunding';
  const receipt = receiptOf(record, { settledAt, at, durationMs: 0, delivery: undefined, refundDue, refund });
  return { facts: { refundTransaction: transaction }, receipt };
}

function refundedBefore({ refundTransaction = '' }: PaymentRecord): RefundOutcome {
  return { kind: 'refunded', transaction: refundTransaction, before: true };
}
