/** Keccak-256 and the checksum of an address (EIP-55); HMAC-SHA-256 under a key of many uses. */

import { hash } from 'node:crypto';
import { createKeccak } from 'hash-wasm';

const DIGEST_BITS = 256;

// Awaited once when the module loads, so that all callers (domain separators at start, digests per
// proof) are synchronous.
const hasher = await createKeccak(DIGEST_BITS);

/** Keccak-256 as Ethereum uses it (not SHA3-256). Returns 32 fresh bytes. */
export function keccak256(bytes: Uint8Array): Uint8Array {
  return hasher.init().update(bytes).digest('binary');
}

/** From this hexadecimal digit of the hash on, the letter in its place is a capital. */
const CAPITAL_FROM = 8;

/** An address of 40 hexadecimal digits, whatever the case of its letters, in EIP-55 form. */
export function checksumAddress(address: string): string {
  const digits = address.slice(2).toLowerCase();
  const hash = Buffer.from(keccak256(Buffer.from(digits, 'latin1'))).toString('hex');
  const cased = [...digits].map((digit, at) =>
    Number.parseInt(hash.charAt(at), 16) >= CAPITAL_FROM ? digit.toUpperCase() : digit,
  );
  return ['0x', ...cased].join('');
}

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
 * The bytes that `createHmac('sha256', key)` makes of the parts in a row, in less than half of its
 * time: Node looks the algorithm up for each of its HMACs.
 */
export function hmacSha256({ inner, outer }: HmacPads, ...message: readonly Uint8Array[]): Buffer {
  return digest(outer, digest(inner, ...message));
}

/** The SHA-256 of the parts, as a text at first: Node allocates other results outside its pool. */
function digest(...parts: readonly Uint8Array[]): Buffer {
  return Buffer.from(hash('sha256', Buffer.concat(parts), 'latin1'), 'latin1');
}
