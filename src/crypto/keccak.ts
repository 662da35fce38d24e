import { createKeccak } from 'hash-wasm';

const DIGEST_BITS = 256;

// Awaited once when the module loads, so that everything behind it (domain separators at start,
// digests per proof) is synchronous.
const hasher = await createKeccak(DIGEST_BITS);

/** Keccak-256 as Ethereum uses it (not SHA3-256). Returns 32 fresh bytes. */
export function keccak256(bytes: Uint8Array): Uint8Array {
  return hasher.init().update(bytes).digest('binary');
}
