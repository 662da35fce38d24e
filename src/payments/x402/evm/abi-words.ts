/** The 32-byte words of the EVM in digests of proofs, and hex as viem takes it. */

export const WORD_BYTES = 32;
/** Hex digits of a word. */
export const WORD_DIGITS = 2 * WORD_BYTES;

/**
 * 0x-hex that a parser has checked, as viem takes it: in lower case, because viem refuses an
 * address in mixed case that is no checksum.
 */
export function lowerHex(hex: string): `0x${string}` {
  return hex.toLowerCase() as `0x${string}`;
}

/** Bytes of a 0x-prefixed hex string that a parser has checked. */
export function hexBytes(hex: string): Uint8Array {
  return Buffer.from(hex.slice(2), 'hex');
}

/** 0x-prefixed lower-case hex of bytes. */
export function bytesHex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`;
}

/** One word without prefix: a 0x-hex value (address, bytes32, quantity) padded on the left. */
export function hexWord(hex: string): string {
  return hex.slice(2).toLowerCase().padStart(WORD_DIGITS, '0');
}

/** One word without prefix: an unsigned integer below 2^256. */
export function uintWord(value: bigint): string {
  return value.toString(16).padStart(WORD_DIGITS, '0');
}
