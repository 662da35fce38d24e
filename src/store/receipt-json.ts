import type { Receipt, ReceiptPage, ReceiptQuery } from '../receipts/receipt.ts';
import { type Older, sameFields, scanPage } from './page.ts';

/** Undefined for what is no receipt: one damaged entry must not close the whole book. */
export function parseReceipt(json: string): Receipt | undefined {
  try {
    return JSON.parse(json) as Receipt;
  } catch {
    return undefined;
  }
}

/** A page of the book over any store. */
export async function receiptPage(query: ReceiptQuery, older: Older<Receipt>): Promise<ReceiptPage> {
  const { limit, cursor, requestId, resourceId, delivered } = query;
  const sameOther = sameFields<Receipt>({ resourceId, delivered });
  // The buyer of a resumed delivery may still hold the id of the request that paid.
  const sameRequest = ({ requestId: own, metadata }: Receipt): boolean =>
    requestId === undefined || own === requestId || metadata?.resumedFrom === requestId;
  const filtered = sameOther !== undefined || requestId !== undefined;
  const matches = filtered
    ? (receipt: Receipt): boolean => (sameOther?.(receipt) ?? true) && sameRequest(receipt)
    : undefined;
  const { items, next } = await scanPage({ limit, cursor, matches }, older);
  return { receipts: items, ...(next === undefined ? {} : { nextCursor: next }) };
}
