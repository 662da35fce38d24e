import { uuidv7 } from '../events/uuid.ts';

/**
 * A receipt id: `receipt_` + UUIDv7, so that ids sort by time and a receipt's id alone is its place in the book.
 * @param random 16 bytes; given where the same receipt must get the same id again
 */
export function receiptId(nowMs: number = Date.now(), random?: Uint8Array): string {
  return `receipt_${uuidv7(nowMs, random)}`;
}

/** What stands before every receipt id of this moment or later, and behind every earlier one. */
export function receiptIdsBefore(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0');
  return `receipt_${hex.slice(0, 8)}-${hex.slice(8)}`;
}
