import { encodeHeader } from './header-codec.ts';
import type { PaymentResponse } from './types.ts';

/**
 * The PAYMENT-RESPONSE document (specification 2 with the additive fields of contract 4.2). Field by field, so that nothing a facilitator
 * said can slip into an answer of ours.
 */
export function paymentResponseDocument(response: PaymentResponse): PaymentResponse {
  const { success, transaction, network, status, provider, amount, currency } = response;
  const { payer, receiptId, requestId, errorReason } = response;
  return {
    ...{ success, transaction, network, status, provider, amount, currency },
    ...(payer === undefined ? {} : { payer }),
    ...(receiptId === undefined ? {} : { receiptId }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(errorReason === undefined ? {} : { errorReason }),
  };
}

/** The same as header. */
export function encodePaymentResponse(response: PaymentResponse): string {
  return encodeHeader(paymentResponseDocument(response));
}
