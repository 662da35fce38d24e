/** The hash of Ethereum, for EIP-712 digests, calldata and the nonce that binds a mandate. */

import { createKeccak } from 'hash-wasm';

const DIGEST_BITS = 256;

// Awaited once when the module loads, so that all callers (domain separators at start, digests per
// proof) are synchronous.
const hasher = await createKeccak(DIGEST_BITS);

/** Keccak-256 as Ethereum uses it (not SHA3-256). Returns 32 fresh bytes. */
export function keccak256(bytes: Uint8Array): Uint8Array {
  return hasher.init().update(bytes).digest('binary');
}
