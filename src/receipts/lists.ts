import type { Receipt } from './receipt.ts';

/**
 * Where a receipt stands in the book. `done`: delivered; these are trimmed. `owed`: paid and not
 * delivered, refunds that are due among them; never trimmed. `uncertain`: those of the owed ones of
 * which it is not known whether they were paid, or whether they arrived.
 */
export type ReceiptList = 'done' | 'owed' | 'uncertain';

/** The lists a receipt stands on. It changes them in the write that changes the receipt. */
export function listsOf(receipt: Receipt): readonly ReceiptList[] {
  if (receipt.delivered) return ['done'];
  return uncertaintyOf(receipt) === undefined ? ['owed'] : ['owed', 'uncertain'];
}

/**
 * What is not known of a receipt: whether the money moved, or whether the answer arrived; undefined
 * when both are known.
 */
export function uncertaintyOf({ delivered, payment, metadata }: Receipt): 'payment' | 'delivery' | undefined {
  if (delivered) return undefined;
  if (payment?.status === 'unknown') return 'payment';
  return metadata?.deliveryUncertain === true ? 'delivery' : undefined;
}

/**
 * The requests it belongs to: the buyer of a resumed delivery may still hold the id of the request
 * that paid.
 */
export function requestsOf({ requestId, metadata }: Receipt): readonly string[] {
  return metadata?.resumedFrom === undefined ? [requestId] : [requestId, metadata.resumedFrom];
}
