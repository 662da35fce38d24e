/** The hash of Ethereum, and the checksum that it makes of an address (EIP-55). */

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
