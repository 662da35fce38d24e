import { encodeHeader } from './header-codec.ts';
import type { PaymentResponse } from './wire.ts';

/**
 * The PAYMENT-RESPONSE header (SPEC part 2 with the additive fields of CONTRACT 4.2). Field by field, so that nothing a facilitator
 * said can slip into an answer of ours.
 */
export function encodePaymentResponse(response: PaymentResponse): string {
  const { success, transaction, network, status, provider, amount, currency } = response;
  const { payer, receiptId, requestId, errorReason } = response;
  // Members that are undefined are left out by JSON.
  const additive = { payer, receiptId, requestId, errorReason };
  return encodeHeader({ success, transaction, network, status, provider, amount, currency, ...additive });
}
