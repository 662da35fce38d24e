/** `GET /api/purchases/{receiptId}`: the state of a purchase, signed, for its buyer. */

import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import type { PurchaseSigner } from '../../payments/delivery/purchase-signer.ts';
import type { PaymentRecord } from '../../payments/ledger/ledger.ts';
import type { FindOwn } from '../../payments/settlement/known-payment.ts';
import { pendingResponse, settledResponse } from '../../payments/x402/wire/payment-response.ts';
import type { PaymentResponse } from '../../payments/x402/wire/types.ts';
import { RECEIPT_ID, type Receipt, type ReceiptBook } from '../../receipts/receipt.ts';
import { sendJson } from '../../server/http/respond.ts';
import { StoreError } from '../../store/port/store-error.ts';
import { carriedKey, carriedProof } from '../extract-credentials.ts';

export const PURCHASE_PATH = '/api/purchases/:receiptId';

/** The same for an unknown id, another's purchase and a wrong secret. */
const NOT_YOURS =
  'No purchase of this id opens with this proof. Send the PAYMENT-SIGNATURE that paid, extensions included, and its Idempotency-Key.';

interface PurchaseSources {
  readonly findOwn: FindOwn;
  readonly receipts: Pick<ReceiptBook, 'page'>;
  readonly signer: PurchaseSigner;
}

export function purchaseState({ findOwn, receipts, signer }: PurchaseSources): RequestHandler {
  return async function answerPurchase(req, res) {
    try {
      const receiptId = String(req.params['receiptId']);
      const key = carriedKey(req);
      const asked = {
        receiptId,
        proof: carriedProof(req),
        idempotencyKey: typeof key === 'string' ? key : undefined,
      };
      const record = RECEIPT_ID.test(receiptId) ? await findOwn(asked) : undefined;
      if (record === undefined) throw new GatewayError('NOT_FOUND', { message: NOT_YOURS });
      const { receipts: found } = await receipts.page({ limit: 1, payment: record.payId });
      res.setHeader('cache-control', 'no-store');
      sendJson(res, 200, JSON.stringify(stateOf(record, found[0], signer)));
    } catch (thrown) {
      throw thrown instanceof StoreError ? new GatewayError('STORAGE_ERROR', { cause: thrown }) : thrown;
    }
  };
}

/** States in which it is not known whether the money moved. */
const UNKNOWN: readonly PaymentRecord['state'][] = ['settling', 'unresolved'];

/** Signs the state anew from the record; signs nothing while the money may not have moved. */
function stateOf(record: PaymentRecord, receipt: Receipt | undefined, signer: PurchaseSigner): object {
  const { receiptId, resourceId, requestId, state } = record;
  const known = { receiptId, resourceId, state };
  if (UNKNOWN.includes(state)) return { ...known, payment: pendingResponse(record, record.transaction, requestId) };
  const delivered = state === 'delivered' ? receipt : undefined;
  const statement = signer.statement(record, {
    state,
    digests: delivered?.digests,
    status: delivered?.backendStatus,
    deliveredAt: delivered?.deliveredAt === undefined ? undefined : Date.parse(delivered.deliveredAt),
  });
  return {
    ...known,
    ...(delivered?.deliveredAt === undefined ? {} : { deliveredAt: delivered.deliveredAt }),
    payment: paymentOf(record, signer),
    // The receipt is read after the record, and may be newer than the signed state.
    ...(receipt?.refund === undefined || receipt.refund.transaction !== record.refundTransaction
      ? {}
      : { refund: receipt.refund }),
    ...(statement === undefined ? {} : { statement }),
  };
}

/** The receipt of x402 says that an answer is on the way, so only a delivered purchase has one. */
function paymentOf(record: PaymentRecord, signer: PurchaseSigner): PaymentResponse {
  const settled = settledResponse(record, record.requestId);
  return record.state === 'delivered' ? signer.withReceipt(settled, record) : settled;
}
