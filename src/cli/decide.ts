/** `acg reconcile --decide`: an operator decides a payment that nothing else can decide. */

import { randomUUID } from 'node:crypto';
import { loadConfig } from '../config/load.ts';
import { type EventDraft, protocolOf } from '../events/event.ts';
import { fencingToken, type PaymentLedger, type PaymentRecord } from '../payments/ledger/ledger.ts';
import { receiptOf } from '../payments/ledger/payment-receipt.ts';
import { NONCE_ALREADY_USED } from '../payments/x402/wire/reasons.ts';
import { UsageError } from './exit-code.ts';
import { requireStoreFile, withStore } from './with-store.ts';

const DECISIONS = ['paid', 'unpaid', 'unclaimed'] as const;

/** The operator's decision about one payment. */
interface Decision {
  readonly payId: string;
  /** `unclaimed`: paid, for another store or seller of the same payee. */
  readonly was: (typeof DECISIONS)[number];
  /** The transaction that paid, where it was found: 0x and 64 hex digits. */
  readonly transaction?: string;
}

const PAY_ID = /^[0-9a-f]{64}$/;
const TRANSACTION = /^0x[0-9a-f]{64}$/;

/** Reads `--decide` and its word. @throws UsageError */
export function readDecision(payId: string, was: string | undefined, transaction: string | undefined): Decision {
  if (!PAY_ID.test(payId)) throw new UsageError('--decide wants the payment.replayKey of the receipt: 64 hex digits');
  const decision = DECISIONS.find((one) => one === was);
  if (decision === undefined)
    throw new UsageError('give the decision: reconcile --decide PAYID paid, or unpaid, or unclaimed');
  if (transaction === undefined) return { payId, was: decision };
  if (decision !== 'paid') throw new UsageError('--transaction belongs to paid');
  const hash = transaction.toLowerCase();
  if (!TRANSACTION.test(hash)) throw new UsageError('--transaction wants a hash: 0x and 64 hex digits');
  return { payId, was: decision, transaction: hash };
}

/**
 * Ends a payment that is `unresolved`. Paid: it is owed from now on, so a gateway delivers it, or
 * its buyer collects it, for 24 hours, and then a refund is due. Unpaid: its buyer is asked to pay
 * anew. Unclaimed: its buyer is told that the authorization is used. May run while the gateways do.
 * @throws UsageError, ConfigError; Error when the store does not answer, or the payment is not
 * unresolved
 */
export async function decide({ config, decision }: { readonly config?: string; readonly decision: Decision }) {
  const settings = loadConfig({ path: config, env: process.env });
  requireStoreFile(settings);
  await withStore(settings, async (store) => {
    await decided(store.ledger, decision);
    process.stdout.write(`${decision.payId} ${decision.was}\n`);
  });
}

/** @throws Error when the payment is not unresolved */
export async function decided(ledger: PaymentLedger, { payId, was, transaction }: Decision): Promise<void> {
  const record = await ledger.read(payId);
  if (record === undefined) throw new Error(`${payId} is not known to this store`);
  if (record.state !== 'unresolved') throw new Error(`${payId} is ${record.state}: it waits for no decision`);
  const change = was === 'paid' ? asPaid(record, transaction) : asRefused(record, was);
  // One step token, so that a repetition of this command changes nothing.
  const command = { ...fencingToken(record), step: randomUUID(), leaseMs: 0, ...change };
  const written = await ledger.advance(command);
  if (written.kind !== 'done') throw new Error(`${payId} was decided meanwhile`);
}

function asPaid(record: PaymentRecord, transaction: string | undefined) {
  const at = new Date();
  const hash = transaction ?? record.transaction;
  const known = hash === undefined ? {} : { transaction: hash };
  const { network, amount, currency, payer } = record;
  const paid = { ...record, ...known, evidence: 'operator' } as const;
  return {
    to: 'settled',
    facts: { ...known, evidence: 'operator' },
    receipt: receiptOf(paid, { settledAt: at, at, durationMs: 0, delivery: undefined }),
    events: [
      event(record, at, 'payment.settled', 'ok', {
        transaction: hash ?? '',
        network,
        amount,
        currency,
        payer,
        decided: 'operator',
      }),
    ],
  } as const;
}

function asRefused(record: PaymentRecord, was: 'unpaid' | 'unclaimed') {
  const unclaimed = was === 'unclaimed';
  const reason = unclaimed ? NONCE_ALREADY_USED : 'settlement_undecided';
  return {
    to: 'refused',
    facts: { reason, evidence: unclaimed ? 'unclaimed' : 'operator' },
    // Nothing was paid here, so no receipt remains.
    dropReceipt: record.receiptId,
    events: [event(record, new Date(), 'payment.rejected', 'error', { reason, decided: 'operator' })],
  } as const;
}

function event(
  { requestId, callId, resourceId, channel }: PaymentRecord,
  at: Date,
  type: EventDraft['type'],
  status: 'ok' | 'error',
  data: NonNullable<EventDraft['data']>,
): EventDraft {
  return {
    type,
    requestId,
    callId,
    resourceId,
    at: at.toISOString(),
    adapter: protocolOf(channel),
    status,
    paymentProvider: 'x402',
    data,
  };
}
