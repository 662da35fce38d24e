import type { PublicJwk } from './signing-key.ts';

/** Where it is published. */
export const KEY_SET_PATH = '/.well-known/jwks.json';

/** A JWK Set (RFC 7517, section 5): what anyone needs to check what these keys signed. */
export function keySet(keys: readonly PublicJwk[]): { readonly keys: readonly PublicJwk[] } {
  return { keys };
}
