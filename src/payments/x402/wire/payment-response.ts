/**
 * The parts of an answer about the payment: PAYMENT-RESPONSE, `details` of an error, and the
 * extension `offer-receipt` of x402.
 */

import type { HostKey } from '../../../crypto/signing-key.ts';
import type { PaymentDetails } from '../../../errors.ts';
import type { PaymentRecord } from '../../ledger/ledger.ts';
import type { Accepts } from './challenge.ts';
import { encodeHeader } from './proof.ts';
import type { Extension, PaymentRequirements, PaymentResponse } from './types.ts';

/** The money of a summary: an amount in display units. */
type Money = Pick<PaymentResponse, 'network' | 'amount' | 'currency'>;

/** Takes member by member, so that nothing else of a record or an offer reaches the buyer. */
function summary(
  status: PaymentResponse['status'],
  transaction: string | undefined,
  { network, amount, currency }: Money,
): PaymentResponse {
  const paid = { transaction: transaction ?? '', network, status, provider: 'x402', amount, currency } as const;
  return { success: status === 'settled', ...paid };
}

/** The PAYMENT-RESPONSE summary of a settled payment (specification 2). */
export function settledResponse(record: PaymentRecord, requestId: string): PaymentResponse {
  const { payer, receiptId, transaction } = record;
  return { ...summary('settled', transaction, record), payer, receiptId, requestId };
}

/** The PAYMENT-RESPONSE summary of a definite refusal by the settlement. */
export function refusedResponse(
  { requirements: { network }, amount, currency }: Accepts,
  requestId: string,
  errorReason: string,
  transaction?: string,
): PaymentResponse {
  return { ...summary('refused', transaction, { network, amount, currency }), requestId, errorReason };
}

/** The PAYMENT-RESPONSE summary of a settlement whose outcome is not known yet (x402 2.5). */
export function pendingResponse(
  record: PaymentRecord,
  transaction: string | undefined,
  requestId: string,
): PaymentResponse {
  const { payer } = record;
  return { ...summary('pending', transaction, record), payer, requestId, errorReason: 'settlement_pending' };
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
 * The header in fewer bytes, for heads with little room: without its signed receipt, then with the
 * members of the specification and the receipt id alone.
 */
export function shorterResponses({ extensions: _signed, ...response }: PaymentResponse): readonly string[] {
  const { success, transaction, network, payer, receiptId, errorReason } = response;
  const needed = { success, transaction, network, payer, receiptId, errorReason };
  return [encodeHeader(response), encodeHeader(needed)];
}

/** The schema of every `info`: clients echo it, and no verifier reads it. */
const SCHEMA = { type: 'object' } as const;

/** The version in the payloads of signed offers and receipts. */
const VERSION = 1;

/** The offers of a 402 signed, in their order. `validUntil`: Unix seconds. */
export function signedOffers(
  key: HostKey,
  accepts: readonly PaymentRequirements[],
  resourceUrl: string,
  validUntil: number,
): Extension {
  const offers = accepts.map(({ scheme, network, asset, payTo, amount }, acceptIndex) => {
    const signature = key.sign({ version: VERSION, resourceUrl, scheme, network, asset, payTo, amount, validUntil });
    return { format: 'jws', acceptIndex, signature };
  });
  return { info: { offers }, schema: SCHEMA };
}

/**
 * States that a payment was accepted and its answer is on the way, and no more: headers leave
 * before a body. `issuedAt`: Unix seconds.
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
