import { createHash, randomUUID } from 'node:crypto';
import type { EventDraft, EventType } from '../../../src/events/event.ts';
import type {
  Advance,
  Holder,
  KeptAnswer,
  PaymentFacts,
  PaymentRecord,
  PaymentState,
  PaymentTerms,
  Reservation,
  Reserve,
} from '../../../src/payments/ledger/ledger.ts';
import { assertRecord, isFinal } from '../../../src/payments/ledger/table.ts';
import { type Receipt, type ReceiptPayment, receiptId } from '../../../src/receipts/receipt.ts';

export const TRANSACTION = `0x${'ab'.repeat(32)}`;
export const REFUND = `0x${'cd'.repeat(32)}`;

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** The id of a call, the same for the same name. */
function callIdOf(name: string): string {
  return `call_00000000-0000-7000-8000-${sha256(name).slice(0, 12)}`;
}

/** The terms of a purchase; the same name is the same authorization. */
export function terms(name: string = randomUUID(), changes: Partial<PaymentTerms> = {}): PaymentTerms {
  return {
    payId: sha256(name),
    bind: sha256(`market_report|GET|${name}`),
    requestId: `req_${sha256(name).slice(0, 12)}`,
    callId: callIdOf(name),
    resourceId: 'market_report',
    channel: 'http',
    receiptId: receiptId(),
    payer: '0x1111111111111111111111111111111111111111',
    payee: '0x2222222222222222222222222222222222222222',
    asset: '0x3333333333333333333333333333333333333333',
    network: 'eip155:84532',
    units: '10000',
    amount: '0.01',
    currency: 'USDC',
    nonce: `0x${sha256(name)}`,
    validBefore: Math.floor(Date.now() / 1_000) + 120,
    proof: '{"x402Version":2}',
    backendRequest: '{"method":"GET","path":"/reports/Zürich"}',
    proofDigest: sha256(`proof of ${name}`),
    ...changes,
  };
}

/** A moment of the store's clock, milliseconds, and the lease that runs then. */
export const NOW = 1_800_000_000_000;
export const LEASE_MS = 10_000;

/** A record in a state, held by `buyer` under fence 1 until NOW + 10 s. */
export function inState(state: PaymentState, changes: Partial<PaymentRecord> = {}): PaymentRecord {
  const paid = !['reserved', 'worked', 'settling', 'withdrawn', 'refused', 'unresolved'].includes(state);
  const open = !isFinal(state);
  return assertRecord({
    ...terms('one'),
    state,
    owner: 'buyer',
    fence: 1,
    leaseUntil: open ? NOW + LEASE_MS : 0,
    dueAt: open ? NOW + LEASE_MS : 0,
    step: 'before',
    tries: 0,
    reservedAt: NOW - 1_000,
    changedAt: NOW - 500,
    ...(paid ? { transaction: TRANSACTION, settledAt: NOW - 600, evidence: 'logs' } : {}),
    ...(state === 'worked' ? { answered: 200 } : {}),
    ...(state === 'withdrawn' ? { transaction: TRANSACTION, reason: 'relayer_unfunded' } : {}),
    ...(state === 'unresolved' ? { reason: 'undecided' } : {}),
    ...(state === 'refunding' || state === 'refunded' ? { refundTransaction: REFUND } : {}),
    ...(state === 'refused' ? { evidence: 'unsent', reason: 'insufficient_funds' } : {}),
    ...changes,
  });
}

/** The record of a reservation; there is one unless the mandate or the proof is refused. */
export function recordIn(reservation: Reservation): PaymentRecord {
  if (reservation.kind === 'mandate') throw new Error(`the mandate is ${reservation.reason}`);
  if (reservation.kind === 'refused') throw new Error(`the proof was refused: ${reservation.reason}`);
  return reservation.record;
}

/** A fresh command under the tokens of a record. */
export function holder(record: PaymentRecord, step: string = randomUUID()): Holder {
  return { payId: record.payId, owner: record.owner, fence: record.fence, step };
}

export function move(record: PaymentRecord, to: Advance['to'], more: Partial<Advance> = {}): Advance {
  const facts = LEAST_FACTS[to];
  return { ...holder(record), to, leaseMs: 60_000, events: [], ...(facts === undefined ? {} : { facts }), ...more };
}

/** The least that must be known to come into a state. */
export const LEAST_FACTS: Readonly<Partial<Record<PaymentState, PaymentFacts>>> = {
  worked: { answered: 200 },
  settled: { evidence: 'logs', transaction: TRANSACTION },
  refused: { evidence: 'unsent', reason: 'insufficient_funds' },
  unresolved: { reason: 'undecided' },
  withdrawn: { reason: 'relayer_unfunded' },
  refunding: { refundTransaction: REFUND },
  refunded: { refundTransaction: REFUND },
};

export function event(type: EventType, requestId: string, more: Partial<EventDraft> = {}): EventDraft {
  return {
    type,
    requestId,
    callId: callIdOf(requestId),
    resourceId: 'market_report',
    at: '2026-01-02T03:04:05.678Z',
    ...more,
  };
}

export function receipt(id: string, requestId: string, more: Partial<Receipt> = {}): Receipt {
  return {
    id,
    requestId,
    resourceId: 'market_report',
    protocol: 'http',
    at: '2026-01-02T03:04:05.678Z',
    delivered: false,
    backendStatus: 0,
    durationMs: 12,
    ...more,
  };
}

/** The money part of a receipt. */
export const PAYMENT: ReceiptPayment = {
  status: 'settled',
  provider: 'x402',
  amount: '0.01',
  currency: 'USDC',
  network: 'eip155:84532',
  asset: '0x3333333333333333333333333333333333333333',
  payer: '0x1111111111111111111111111111111111111111',
  payee: '0x2222222222222222222222222222222222222222',
  externalReference: TRANSACTION,
  replayKey: sha256('one'),
  settledAt: '2026-01-02T03:04:05.678Z',
};

/**
 * An answer with everything that is easily lost on the way: a repeated header, letters outside
 * ASCII, bytes that are no text.
 */
export function keptAnswer(body: string | Uint8Array = 'Zürich'): KeptAnswer {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(`${body}\0\u{1f4b6}`) : body;
  return {
    status: 203,
    headers: { 'content-type': 'text/plain; charset=utf-8', link: ['</a>; rel=next', '</b>; rel=last'] },
    body: bytes,
  };
}

/**
 * Asks for the payment of `inState` under another owner's name, or for another purchase with its
 * authorization.
 */
export function ask(owner: string, changes: Partial<PaymentTerms> = {}): Reserve {
  return { terms: terms('one', changes), owner, leaseMs: LEASE_MS };
}
