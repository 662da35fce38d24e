/** Makes and reads call ids, the gateway's own names of calls, and the UUIDs behind them. */

import { randomFillSync } from 'node:crypto';

/** `call_` + UUIDv7. Unlike a request id it is unique, and no caller chooses or sees it. */
export const CALL_ID = /^call_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** A fresh call id. */
export function newCallId(nowMs: number = Date.now()): string {
  return newId('call_', nowMs);
}

/** When a call came in, Unix milliseconds of the gateway that took it. */
export function calledAtMs(callId: string): number {
  return Number.parseInt(`${callId.slice(5, 13)}${callId.slice(14, 18)}`, 16);
}

/** Hex digits behind the time of an id: 12 bits, variant and 12 bits, 48 bits. */
const DRAW_BYTES = 10;
const DRAW_DIGITS = 2 * DRAW_BYTES;
/** Where they begin in 16 random bytes. */
const DRAWN_FROM = 6;
const VARIANTS = '89ab';

/** Random bytes for 256 ids: one draw of many costs as much as one of 10 bytes. */
const pool = Buffer.alloc(256 * DRAW_BYTES);
let digits = '';
let used = 0;

let stampedMs = Number.NaN;
let stamp = '';

/**
 * A prefix and a UUIDv7 (RFC 9562, 5.7): its first 48 bits are Unix milliseconds, so that ids sort
 * by time.
 * @param random 16 bytes; given where the same thing must get the same id again
 */
export function newId(prefix = '', nowMs: number = Date.now(), random?: Uint8Array): string {
  const hex = random === undefined ? drawn() : Buffer.from(random).toString('hex', DRAWN_FROM, DRAWN_FROM + DRAW_BYTES);
  const variant = VARIANTS[Number.parseInt(hex.slice(4, 5), 16) & 3] ?? '';
  // Joined: JSON with one text that V8 keeps in pieces takes twice as long to write.
  return [prefix, stampOf(nowMs), hex.slice(1, 4), '-', variant, hex.slice(5, 8), '-', hex.slice(8)].join('');
}

/** All that comes before the random digits; ids of one millisecond share it. */
function stampOf(nowMs: number): string {
  if (nowMs !== stampedMs) {
    const hex = nowMs.toString(16).padStart(12, '0');
    stamp = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
    stampedMs = nowMs;
  }
  return stamp;
}

/** Fresh random digits; each is used once. */
function drawn(): string {
  if (used === digits.length) {
    digits = randomFillSync(pool).toString('hex');
    used = 0;
  }
  used += DRAW_DIGITS;
  return digits.slice(used - DRAW_DIGITS, used);
}
