import { hexBytes } from './abi-words.ts';

/** Order of the group of secp256k1. */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
/** Above it a second signature exists for the same message; tokens refuse those. */
const HALF_ORDER = ORDER / 2n;
/** r, s and v of an account's signature. */
export const ACCOUNT_SIGNATURE_BYTES = 65;
const HEX_PREFIX = 2;
const R_END = HEX_PREFIX + 64;
const S_END = R_END + 64;
/** v as tokens want it; some signers write the bare recovery id instead. */
const V_OFFSET = 27;

/** A signature that an account can have made: r and s in range, s low. */
export interface AccountSignature {
  /** r and s, 64 bytes. */
  readonly compact: Uint8Array;
  readonly recoveryId: 0 | 1;
  /** The spelling the chain accepts: 0x-hex of r, s and v as 27 or 28, lower case. */
  readonly canonical: string;
}

/**
 * Reads a 65-byte signature (0x-hex, checked by the codec). Undefined when no account's signature can look like this: another
 * length, r or s zero or not below the order, s in the upper half, v other than 27, 28 or their bare forms 0, 1.
 */
export function readAccountSignature(signature: string): AccountSignature | undefined {
  if (signature.length !== HEX_PREFIX + 2 * ACCOUNT_SIGNATURE_BYTES) return undefined;
  const r = BigInt(signature.slice(0, R_END));
  const s = BigInt(`0x${signature.slice(R_END, S_END)}`);
  const recoveryId = recoveryIdOf(Number.parseInt(signature.slice(S_END), 16));
  if (r === 0n || r >= ORDER || s === 0n || s > HALF_ORDER || recoveryId === undefined) return undefined;
  const rs = signature.slice(0, S_END).toLowerCase();
  return { compact: hexBytes(rs), recoveryId, canonical: `${rs}${(V_OFFSET + recoveryId).toString(16)}` };
}

function recoveryIdOf(v: number): 0 | 1 | undefined {
  if (v === 0 || v === V_OFFSET) return 0;
  return v === 1 || v === V_OFFSET + 1 ? 1 : undefined;
}
