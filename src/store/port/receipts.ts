/** What both stores share about the book of receipts: JSON, the index of a query, pages, counts. */

import {
  type Receipt,
  type ReceiptPage,
  type ReceiptQuery,
  requestsOf,
  type TrimmedReceipts,
  uncertaintyOf,
} from '../../receipts/receipt.ts';
import { type Older, sameFields, scanPage } from './page.ts';

/** Undefined for a damaged entry, so that it does not close the whole book. */
export function parseReceipt(json: string): Receipt | undefined {
  try {
    return JSON.parse(json) as Receipt;
  } catch {
    return undefined;
  }
}

/** The index that a query is read from. `all`: the book itself. */
export type ReceiptIndex =
  | { readonly kind: 'call'; readonly callId: string }
  | { readonly kind: 'request'; readonly requestId: string }
  | { readonly kind: 'payment'; readonly payment: string }
  | { readonly kind: 'uncertain' }
  | { readonly kind: 'delivered'; readonly delivered: boolean }
  | { readonly kind: 'all' };

/** The index that leaves the least to search. */
export function indexFor({ payment, callId, requestId, uncertain, delivered }: ReceiptQuery): ReceiptIndex {
  if (payment !== undefined) return { kind: 'payment', payment };
  if (callId !== undefined) return { kind: 'call', callId };
  if (requestId !== undefined) return { kind: 'request', requestId };
  if (uncertain !== undefined) return { kind: 'uncertain' };
  return delivered === undefined ? { kind: 'all' } : { kind: 'delivered', delivered };
}

/**
 * A page of the book. `older` reads from the index of the query. Each receipt is compared with the
 * query again, because an index entry may stand for an earlier version of it.
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
  // No index knows the resource.
  const { items, next } = await scanPage({ limit, cursor, matches, indexed: resourceId === undefined }, older);
  return { receipts: items, ...(next === undefined ? {} : { nextCursor: next }) };
}

/** Counts the receipts that one process drops from the book. */
export interface TrimCount {
  add(trimmed: Partial<TrimmedReceipts>): void;
  inAll(): TrimmedReceipts;
}

export function trimCount(): TrimCount {
  let [byLength, byAge] = [0, 0];
  return {
    add({ length = 0, age = 0 }) {
      byLength += length;
      byAge += age;
    },
    inAll: () => ({ length: byLength, age: byAge }),
  };
}
