import { createHash, randomUUID } from 'node:crypto';
import type { EventDraft, EventType } from '../../../src/events/event.ts';
import type { Advance, Holder, PaymentRecord, PaymentTerms } from '../../../src/payments/ledger/ledger.ts';
import { receiptId } from '../../../src/receipts/id.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';

export const TRANSACTION = `0x${'ab'.repeat(32)}`;

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** The terms of a purchase; the same name is the same authorization. */
export function terms(name: string = randomUUID(), changes: Partial<PaymentTerms> = {}): PaymentTerms {
  return {
    payId: sha256(name),
    bind: sha256(`market_report|GET|${name}`),
    requestId: `req_${sha256(name).slice(0, 12)}`,
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
    ...changes,
  };
}

/** A fresh command under the tokens of a record. */
export function holder(record: PaymentRecord, step: string = randomUUID()): Holder {
  return { payId: record.payId, owner: record.owner, fence: record.fence, step };
}

export function move(record: PaymentRecord, to: Advance['to'], more: Partial<Advance> = {}): Advance {
  const facts = to === 'settled' ? { facts: { transaction: TRANSACTION } } : {};
  return { ...holder(record), to, leaseMs: 60_000, events: [], ...facts, ...more };
}

export function event(type: EventType, requestId: string, more: Partial<EventDraft> = {}): EventDraft {
  return { type, requestId, resourceId: 'market_report', at: '2026-01-02T03:04:05.678Z', ...more };
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
