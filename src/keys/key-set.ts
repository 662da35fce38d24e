import type { SigningKey } from './signing-key.ts';

/** A JWK Set (RFC 7517, section 5): what anyone needs to check what these keys signed. */
export function keySet(keys: readonly SigningKey[]): { readonly keys: readonly SigningKey['publicJwk'][] } {
  return { keys: keys.map(({ publicJwk }) => publicJwk) };
}
