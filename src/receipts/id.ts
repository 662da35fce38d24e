import { randomFillSync } from 'node:crypto';

const DRAW_BYTES = 16;
/** Asking for randomness costs the same for one id as for many. */
const pool = Buffer.alloc(128 * DRAW_BYTES);
let used = pool.byteLength;

/**
 * A fresh receipt id: `receipt_` + UUIDv7 (RFC 9562, 5.7), whose first 48 bits are Unix milliseconds, so that ids sort by time
 * and a receipt's id alone is its place in the book.
 * @param random 16 bytes; given where the same receipt must get the same id again
 */
export function receiptId(nowMs: number = Date.now(), random: Uint8Array = drawn()): string {
  return `receipt_${uuidv7(nowMs, random)}`;
}

/** What stands before every receipt id of this moment or later, and behind every earlier one. */
export function receiptIdsBefore(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0');
  return `receipt_${hex.slice(0, 8)}-${hex.slice(8)}`;
}

function uuidv7(nowMs: number, random: Uint8Array): string {
  const bytes = Buffer.from(random);
  bytes.writeUIntBE(nowMs, 0, 6);
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function drawn(): Uint8Array {
  if (used === pool.byteLength) {
    randomFillSync(pool);
    used = 0;
  }
  used += DRAW_BYTES;
  return pool.subarray(used - DRAW_BYTES, used);
}
