/** Makes the fields of payment and merchant small enough for the head of an answer. */

import { encodePaymentResponse, shorterResponses } from '../../payments/x402/wire/payment-response.ts';
import { PAYMENT_RESPONSE, type PaymentResponse } from '../../payments/x402/wire/types.ts';
import { fieldBytes, fieldsBytes } from '../../server/http/head-bytes.ts';

/** Carries the signed receipt of a mandate (ap2 13). */
export const MANDATE_RECEIPT = 'agent-authorization-receipt';

/** Of a repeated answer, of one in place and of a trailer, beside the gateway's usual fields. */
const BESIDE = fieldsBytes({
  'idempotent-replayed': 'true',
  'accept-ranges': 'none',
  'transfer-encoding': 'chunked',
  trailer: 'agent-commerce-delivery',
});

/**
 * The fields of an answer in `room` bytes. PAYMENT-RESPONSE goes without its signed receipt first,
 * then with what its reader needs alone; then the longest field of the merchant goes.
 */
export function fittingHead(
  room: number,
  merchant: Record<string, string>,
  payment: PaymentResponse | undefined,
  mandateReceipt = '',
): {
  readonly merchant: Record<string, string>;
  readonly payment: string | undefined;
  readonly leftOut: readonly string[];
} {
  let left = room - BESIDE - fieldsBytes(merchant) - fieldBytes(MANDATE_RECEIPT, mandateReceipt);
  const whole = payment && encodePaymentResponse(payment);
  if (whole === undefined ? left >= 0 : fieldBytes(PAYMENT_RESPONSE, whole) <= left)
    return { merchant, payment: whole, leftOut: [] };
  const forms = payment === undefined ? [] : [whole ?? '', ...shorterResponses(payment)];
  const needed = forms.at(-1);
  const least = needed === undefined ? 0 : fieldBytes(PAYMENT_RESPONSE, needed);
  const kept = Object.entries(merchant).sort(([, one], [, other]) => one.length - other.length);
  const leftOut: string[] = [];
  while (left < least) {
    const longest = kept.pop();
    if (longest === undefined) break;
    leftOut.push(longest[0]);
    left += fieldBytes(...longest);
  }
  const fitting = forms.find((form) => fieldBytes(PAYMENT_RESPONSE, form) <= left);
  return { merchant: Object.fromEntries(kept), payment: fitting, leftOut };
}
