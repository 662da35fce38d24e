/** The 32-byte words of the EVM: hex and numbers in digests, calldata and answers. */

export const WORD_BYTES = 32;
/** Hex digits of a word. */
export const WORD_DIGITS = 2 * WORD_BYTES;

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

/** The last argument of a call, of type bytes: its length, and 0x-hex padded to whole words. */
export function bytesWords(hex: string): string {
  const digits = hex.slice(2);
  const words = Math.ceil(digits.length / WORD_DIGITS);
  return `${uintWord(BigInt(digits.length / 2))}${digits.padEnd(words * WORD_DIGITS, '0')}`;
}
