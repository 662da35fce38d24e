import type { PublicJwk } from '../../../crypto/signing-key.ts';
import type { Json } from '../../../json/types.ts';
import type { Token } from '../token/jws.ts';
import { publicKeyOf, verifySignature } from '../trust/keys.ts';
import type { VerificationKey } from '../trust/trust.ts';

/** The keys whose checkouts count: the gateway's own and those that the operator added. None may root a mandate (ap2 7.5). */
export interface CheckoutKeys {
  /** Whether the token says what we sign, and the one key that it names signed it. */
  signed(token: Token): boolean;
}

/** A receipt is signed by the same key, and says so: it must never pass for a checkout. */
const TYPES: ReadonlySet<Json | undefined> = new Set(['checkout+jwt', 'JWT']);

/** @throws Refused for a key that cannot verify, Error for two of one id: mistakes of a configuration that was not checked */
export function createCheckoutKeys(trusted: readonly PublicJwk[]): CheckoutKeys {
  const keys = new Map<string, VerificationKey>();
  for (const jwk of trusted) {
    if (keys.has(jwk.kid)) throw new Error('two checkout keys have one kid');
    const json: Json = { ...jwk };
    keys.set(jwk.kid, publicKeyOf(json));
  }
  return {
    signed({ header, signingInput, signature }) {
      const { alg, typ, kid, crit, b64 } = header;
      if (alg !== 'ES256' || !TYPES.has(typ) || typeof kid !== 'string') return false;
      if (crit !== undefined || b64 !== undefined) return false;
      const key = keys.get(kid);
      return key?.alg === 'ES256' && verifySignature(key, signingInput, signature);
    },
  };
}
