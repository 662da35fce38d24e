/** Makes and reads call ids, the gateway's own names of calls, and the UUIDs behind them. */

import { randomFillSync } from 'node:crypto';

/** `call_` + UUIDv7. Unlike a request id it is unique, and no caller chooses or sees it. */
export const CALL_ID = /^call_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** A fresh call id. */
export function newCallId(nowMs: number = Date.now()): string {
  return `call_${uuidv7(nowMs)}`;
}

/** When a call came in, Unix milliseconds of the gateway that took it. */
export function calledAtMs(callId: string): number {
  return Number.parseInt(`${callId.slice(5, 13)}${callId.slice(14, 18)}`, 16);
}

const DRAW_BYTES = 16;
/** Random bytes for 128 ids: one draw of many costs as much as one of 16 bytes. */
const pool = Buffer.alloc(128 * DRAW_BYTES);
let used = pool.byteLength;

/**
 * A UUIDv7 (RFC 9562, 5.7): its first 48 bits are Unix milliseconds, so that ids sort by time.
 * @param random 16 bytes; given where the same thing must get the same id again
 */
export function uuidv7(nowMs: number, random: Uint8Array = drawn()): string {
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
