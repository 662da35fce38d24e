import { paymentResponseDocument } from '../../payments/x402/wire/payment-response.ts';
import type { PaymentResponse } from '../../payments/x402/wire/types.ts';

/** Members of a metadata object, each value as JSON text. */
export type Members = Readonly<Record<string, string>>;

/** What an answer was given to. */
interface Answered {
  readonly requestId: string;
  readonly resourceId: string;
}

/** The id under which logs, events and receipts tell of a call. */
export function requestIdMember(requestId: string): Members {
  return { 'agent-commerce/requestId': JSON.stringify(requestId) };
}

/** Where agents look for what was paid (mcp 5, and a2a 4 under the same name). */
export function paidMember(payment: PaymentResponse | undefined): Members {
  return payment === undefined ? {} : { 'x402/payment-response': JSON.stringify(paymentResponseDocument(payment)) };
}

/** The signed receipt of a mandate (ap2 13). */
export function mandateReceiptMember(receipt: string | undefined): Members {
  return receipt === undefined ? {} : { 'agent-commerce/authorizationReceipt': JSON.stringify(receipt) };
}

/** The summary of a delivery (specification 3). `status`: the merchant's. */
export function deliveryMember(
  { requestId, resourceId }: Answered,
  status: number,
  { payment, replayed }: { readonly payment?: PaymentResponse; readonly replayed?: boolean },
): Members {
  const again = replayed === true ? { replayed } : {};
  const paid = payment === undefined ? {} : { payment: paymentResponseDocument(payment) };
  return { 'agent-commerce/delivery': JSON.stringify({ requestId, resourceId, status, ...again, ...paid }) };
}
