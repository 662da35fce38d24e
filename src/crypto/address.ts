/** Addresses of Ethereum in the mixed case of EIP-55, whose letters are a checksum. */

import { keccak256 } from './keccak.ts';

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
