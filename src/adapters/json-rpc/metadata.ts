/** Members that answers of MCP and A2A carry in their metadata, besides their content. */

import { paymentResponseDocument } from '../../payments/x402/wire/payment-response.ts';
import type { PaymentResponse } from '../../payments/x402/wire/types.ts';

/** Members of a metadata object, each value as JSON text. */
export type Members = Readonly<Record<string, string>>;

/** The members of an object; their names are constants of the gateway and need no escape. */
export function membersText(members: Members): string {
  let written = '';
  for (const name in members) written += `${written === '' ? '' : ','}"${name}":${members[name]}`;
  return written;
}

interface CallNames {
  readonly requestId: string;
  readonly resourceId: string;
}

/** The id of a call in logs, events and receipts. */
export function requestIdMember(requestId: string): Members {
  return { 'agent-commerce/requestId': JSON.stringify(requestId) };
}

/** What was paid, for agents (mcp 5, and a2a 4 under the same name). */
export function paymentMember(payment: PaymentResponse | undefined): Members {
  return payment === undefined ? {} : { 'x402/payment-response': JSON.stringify(paymentResponseDocument(payment)) };
}

/** The signed receipt of a mandate (ap2 13). */
export function mandateReceiptMember(receipt: string | undefined): Members {
  return receipt === undefined ? {} : { 'agent-commerce/authorizationReceipt': JSON.stringify(receipt) };
}

/** The signed statement of a delivery. */
export function statementMember(statement: string | undefined): Members {
  return statement === undefined ? {} : { 'agent-commerce/deliveryStatement': JSON.stringify(statement) };
}

/** The summary of a delivery (specification 3). `status`: the backend's. */
export function deliveryMember(
  { requestId, resourceId }: CallNames,
  status: number,
  { payment, replayed }: { readonly payment?: PaymentResponse; readonly replayed?: boolean },
): Members {
  const again = replayed === true ? { replayed } : {};
  const paid = payment === undefined ? {} : { payment: summaryOf(payment) };
  return { 'agent-commerce/delivery': JSON.stringify({ requestId, resourceId, status, ...again, ...paid }) };
}

/** What is signed stands beside the summary. */
function summaryOf(payment: PaymentResponse): PaymentResponse {
  const { extensions: _signed, ...summary } = paymentResponseDocument(payment);
  return summary;
}
