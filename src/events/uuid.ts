import { randomFillSync } from 'node:crypto';

const DRAW_BYTES = 16;
/** Asking for randomness costs the same for one id as for many. */
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
