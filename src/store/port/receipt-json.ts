import { requestsOf, uncertaintyOf } from '../../receipts/lists.ts';
import type { Receipt, ReceiptPage, ReceiptQuery } from '../../receipts/receipt.ts';
import { type Older, sameFields, scanPage } from './page.ts';

/** Undefined for what is no receipt: one damaged entry must not close the whole book. */
export function parseReceipt(json: string): Receipt | undefined {
  try {
    return JSON.parse(json) as Receipt;
  } catch {
    return undefined;
  }
}

/**
 * The index that a query is read from: the one that leaves the least to look through. `all`: the
 * book itself.
 */
export type ReceiptIndex =
  | { readonly kind: 'call'; readonly callId: string }
  | { readonly kind: 'request'; readonly requestId: string }
  | { readonly kind: 'payment'; readonly payment: string }
  | { readonly kind: 'uncertain' }
  | { readonly kind: 'delivered'; readonly delivered: boolean }
  | { readonly kind: 'all' };

export function indexFor({ payment, callId, requestId, uncertain, delivered }: ReceiptQuery): ReceiptIndex {
  if (payment !== undefined) return { kind: 'payment', payment };
  if (callId !== undefined) return { kind: 'call', callId };
  if (requestId !== undefined) return { kind: 'request', requestId };
  if (uncertain !== undefined) return { kind: 'uncertain' };
  return delivered === undefined ? { kind: 'all' } : { kind: 'delivered', delivered };
}

/**
 * A page of the book over any store. `older` reads from the index of the query. The receipt itself
 * has the last word: an index entry may stand for what it said a moment ago.
 */
export async function receiptPage(query: ReceiptQuery, older: Older<Receipt>): Promise<ReceiptPage> {
  const { limit, cursor, requestId, callId, payment, resourceId, delivered, uncertain } = query;
  const same = sameFields<Receipt>({ resourceId, delivered });
  const matches = (receipt: Receipt): boolean =>
    (same?.(receipt) ?? true) &&
    (requestId === undefined || requestsOf(receipt).includes(requestId)) &&
    (payment === undefined || receipt.payment?.replayKey === payment) &&
    (callId === undefined || receipt.metadata?.callId === callId) &&
    (uncertain === undefined || uncertaintyOf(receipt) === uncertain);
  // A resource is looked for among what the index gives.
  const { items, next } = await scanPage({ limit, cursor, matches, indexed: resourceId === undefined }, older);
  return { receipts: items, ...(next === undefined ? {} : { nextCursor: next }) };
}
