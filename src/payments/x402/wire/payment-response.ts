/**
 * What an answer tells the buyer about the payment: PAYMENT-RESPONSE, `details` of an error, and
 * the extension `offer-receipt` of x402.
 */

import type { HostKey } from '../../../crypto/signing-key.ts';
import type { PaymentDetails } from '../../../errors.ts';
import type { PaymentRecord } from '../../ledger/ledger.ts';
import type { Offer } from './offers.ts';
import { encodeHeader } from './proof.ts';
import type { Extension, PaymentRequirements, PaymentResponse } from './types.ts';

/** The PAYMENT-RESPONSE summary of a settled payment (specification 2). */
export function settledResponse(record: PaymentRecord, requestId: string): PaymentResponse {
  return {
    success: true,
    transaction: record.transaction ?? '',
    network: record.network,
    status: 'settled',
    provider: 'x402',
    amount: record.amount,
    currency: record.currency,
    payer: record.payer,
    receiptId: record.receiptId,
    requestId,
  };
}

/** The PAYMENT-RESPONSE summary of a definite refusal by the settlement. */
export function refusedResponse(offer: Offer, requestId: string, reason: string, transaction = ''): PaymentResponse {
  return {
    success: false,
    transaction,
    network: offer.requirements.network,
    status: 'refused',
    provider: 'x402',
    amount: offer.amount,
    currency: offer.currency,
    requestId,
    errorReason: reason,
  };
}

/** The PAYMENT-RESPONSE summary of a settlement whose outcome is not known yet (x402 2.5). */
export function pendingResponse(
  record: PaymentRecord,
  transaction: string | undefined,
  requestId: string,
): PaymentResponse {
  const { network, amount, currency, payer } = record;
  return {
    success: false,
    transaction: transaction ?? '',
    network,
    status: 'pending',
    provider: 'x402',
    amount,
    currency,
    payer,
    requestId,
    errorReason: 'settlement_pending',
  };
}

/** `details.payment` of an error: what the buyer already paid. */
export function paymentDetails(record: PaymentRecord): PaymentDetails {
  const { amount, currency, network, payer, state, transaction } = record;
  return {
    status: state === 'refused' || state === 'reserved' || state === 'settling' ? state : 'settled',
    provider: 'x402',
    amount,
    currency,
    network,
    ...(transaction === undefined ? {} : { externalReference: transaction }),
    payer,
  };
}

/**
 * The PAYMENT-RESPONSE document (specification 2 with the additive fields of contract 4.2). Copied
 * field by field, so that no other member of a facilitator's answer reaches the buyer.
 */
export function paymentResponseDocument(response: PaymentResponse): PaymentResponse {
  const { success, transaction, network, status, provider, amount, currency } = response;
  const { payer, receiptId, requestId, errorReason, extensions } = response;
  return {
    ...{ success, transaction, network, status, provider, amount, currency },
    ...(payer === undefined ? {} : { payer }),
    ...(receiptId === undefined ? {} : { receiptId }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(errorReason === undefined ? {} : { errorReason }),
    ...(extensions === undefined ? {} : { extensions }),
  };
}

/**
 * The header in fewer bytes, for heads with little room: without its signed receipt, then with the
 * members of the specification and the receipt id alone.
 */
export function shorterResponses({ extensions: _signed, ...response }: PaymentResponse): readonly string[] {
  const { success, transaction, network, payer, receiptId, errorReason } = response;
  const needed = { success, transaction, network, payer, receiptId, errorReason };
  return [encodePaymentResponse(response), encodeHeader(needed)];
}

export function encodePaymentResponse(response: PaymentResponse): string {
  return encodeHeader(paymentResponseDocument(response));
}

/** Of all forms of `info` alike: clients echo it, and no verifier reads it. */
const SCHEMA = { type: 'object' } as const;

/** Both payloads have this version. */
const VERSION = 1;

/** The one offer of a 402 signed. `validUntil`: Unix seconds. */
export function signedOffer(
  key: HostKey,
  { scheme, network, asset, payTo, amount }: PaymentRequirements,
  resourceUrl: string,
  validUntil: number,
): Extension {
  const signature = key.sign({ version: VERSION, resourceUrl, scheme, network, asset, payTo, amount, validUntil });
  return { info: { offers: [{ format: 'jws', acceptIndex: 0, signature }] }, schema: SCHEMA };
}

/**
 * That a payment was accepted and its answer is on the way: headers leave before a body, so it
 * claims no more. `issuedAt`: Unix seconds.
 */
export function signedReceipt(
  key: HostKey,
  { network, payer, transaction }: Pick<PaymentRecord, 'network' | 'payer' | 'transaction'>,
  resourceUrl: string,
  issuedAt: number,
): Extension {
  const paidBy = transaction === undefined ? {} : { transaction };
  const signature = key.sign({ version: VERSION, network, resourceUrl, payer, issuedAt, ...paidBy });
  return { info: { receipt: { format: 'jws', signature } }, schema: SCHEMA };
}
