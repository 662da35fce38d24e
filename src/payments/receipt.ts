import type { Receipt, ReceiptPayment } from '../receipts/receipt.ts';
import type { PaymentTerms } from './ledger/ledger.ts';

/** How far the delivery of a paid call came. `failure` is the error code the buyer was given. */
export interface Delivery {
  readonly backendStatus: number;
  readonly deliveredAt: Date | undefined;
  readonly failure: string | undefined;
}

/** The receipt of a settled payment: the same id from settlement to the last delivery attempt. */
export function receiptOf(
  terms: PaymentTerms,
  facts: {
    readonly transaction: string;
    readonly settledAt: Date;
    readonly at: Date;
    readonly durationMs: number;
    readonly delivery: Delivery | undefined;
    /** The request that collected later what an earlier one had paid. */
    readonly resumedBy?: string;
  },
): Receipt {
  const { delivery, resumedBy } = facts;
  const metadata = {
    ...(delivery?.failure === undefined ? {} : { backendErrorCode: delivery.failure }),
    ...(resumedBy === undefined ? {} : { resumedFrom: terms.requestId }),
  };
  return {
    id: terms.receiptId,
    requestId: resumedBy ?? terms.requestId,
    resourceId: terms.resourceId,
    protocol: terms.channel,
    at: facts.at.toISOString(),
    delivered: delivery?.deliveredAt !== undefined,
    ...(delivery?.deliveredAt === undefined ? {} : { deliveredAt: delivery.deliveredAt.toISOString() }),
    backendStatus: delivery?.backendStatus ?? 0,
    durationMs: facts.durationMs,
    payment: paymentOf(terms, facts.transaction, facts.settledAt),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  };
}

function paymentOf(terms: PaymentTerms, transaction: string, settledAt: Date): ReceiptPayment {
  return {
    status: 'settled',
    provider: 'x402',
    amount: terms.amount,
    currency: terms.currency,
    network: terms.network,
    asset: terms.asset,
    payer: terms.payer,
    payee: terms.payee,
    externalReference: transaction,
    replayKey: terms.payId,
    settledAt: settledAt.toISOString(),
  };
}
