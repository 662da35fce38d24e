import { isObject } from '../../../json/object.ts';
import type { Json, JsonObject } from '../../../json/types.ts';
import { Refused } from './reasons.ts';

/**
 * The one revealed mandate of a token. Undefined: the token carries none, so it is a credential or the wrong thing.
 * @throws Refused
 */
export function mandateOf(claims: JsonObject): JsonObject | undefined {
  const delegated = claims['delegate_payload'];
  if (delegated === undefined) return undefined;
  if (!Array.isArray(delegated)) throw new Refused('claims_invalid');
  const [mandate, ...more]: readonly Json[] = delegated;
  if (mandate === undefined) throw new Refused('disclosure_missing');
  if (more.length > 0 || !isObject(mandate)) throw new Refused('claims_invalid');
  return mandate;
}

/**
 * The JWK of `cnf` (RFC 7800): whose signature the next hop must have. A token that carries a mandate names the key in the mandate; a
 * second one beside it would leave open which of the two holds.
 * @throws Refused
 */
export function confirmedKey(claims: JsonObject, mandate: JsonObject | undefined): Json {
  if (mandate !== undefined && claims['cnf'] !== undefined) throw new Refused('chain_broken');
  const confirmation = (mandate ?? claims)['cnf'];
  if (confirmation === undefined) throw new Refused('chain_broken');
  if (!isObject(confirmation)) throw new Refused('claims_invalid');
  const jwk = confirmation['jwk'];
  if (jwk === undefined) throw new Refused('chain_broken');
  return jwk;
}

/** Whether a segment names a key for a next hop, in the token or in its mandate. */
export function hasConfirmation(claims: JsonObject, mandate: JsonObject | undefined): boolean {
  return claims['cnf'] !== undefined || mandate?.['cnf'] !== undefined;
}
