/** HMAC-SHA-256 (RFC 2104) under a key that is used for many messages. */

import { hash } from 'node:crypto';

/** One block of SHA-256, bytes. */
const BLOCK_BYTES = 64;

/** The two blocks that HMAC makes of a key. As secret as the key. */
export interface HmacPads {
  readonly inner: Uint8Array;
  readonly outer: Uint8Array;
}

/** @param key at most 64 bytes @throws RangeError for a longer one */
export function hmacPads(key: Uint8Array): HmacPads {
  const block = new Uint8Array(BLOCK_BYTES);
  block.set(key);
  return { inner: block.map((byte) => byte ^ 0x36), outer: block.map((byte) => byte ^ 0x5c) };
}

/**
 * The bytes that `createHmac('sha256', key)` makes of the parts in a row. Two digests cost less
 * than half of it: Node looks the algorithm up for each of its HMACs.
 */
export function hmacSha256({ inner, outer }: HmacPads, ...message: readonly Uint8Array[]): Buffer {
  return digest(outer, digest(inner, ...message));
}

/** By way of a text with one character a byte: Node allocates memory outside of its pool else. */
function digest(...parts: readonly Uint8Array[]): Buffer {
  return Buffer.from(hash('sha256', Buffer.concat(parts), 'latin1'), 'latin1');
}
