import { isObject } from '../../../json/object.ts';
import type { Json } from '../../../json/types.ts';
import type { KeysById } from './issuer.ts';
import { readJwk } from './static-keys.ts';
import type { VerificationKey } from './trust.ts';

/** Most keys of one issuer that are looked at. */
const MAX_KEYS = 100;

/** A document of keys that gives none. Says what is wrong of it and quotes nothing. */
export class UselessKeys extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UselessKeys';
  }
}

/**
 * The usable keys of a JWK Set (RFC 7517, section 5). Keys for other purposes may stand in it and are passed over. A key that came with
 * its private half belongs to everybody, and of two keys with one `kid` nobody knows which is meant: those are not taken either.
 * @throws UselessKeys when no key remains
 */
export function keysOfJwks(document: Json): KeysById {
  const listed = isObject(document) ? document['keys'] : undefined;
  if (!Array.isArray(listed)) throw new UselessKeys('the answer is no JWK Set');
  return oneForEachId(listed.filter(isObject).map((jwk) => readJwk(jwk)));
}

/** Keys by id, without the ids that come twice. @throws UselessKeys for none, and for too many */
export function oneForEachId(readings: readonly ReturnType<typeof readJwk>[]): KeysById {
  if (readings.length > MAX_KEYS) throw new UselessKeys(`there are more than ${MAX_KEYS} keys`);
  const keys = new Map<string, VerificationKey>();
  const twice = new Set<string>();
  for (const reading of readings) {
    if (!reading.ok) continue;
    if (keys.has(reading.kid)) twice.add(reading.kid);
    keys.set(reading.kid, reading.key);
  }
  for (const kid of twice) keys.delete(kid);
  if (keys.size === 0) throw new UselessKeys('there is no key that can be used');
  return keys;
}
