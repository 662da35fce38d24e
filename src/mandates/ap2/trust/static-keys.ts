/** Reads public keys that are chosen by their `kid`: configured ones and fetched ones. */

import type { JsonObject } from '../../../json/types.ts';
import { readPublicKey } from './keys.ts';
import type { VerificationKey } from './trust.ts';

/** Longest key id, characters: a DID URL fits. */
export const MAX_KID_LENGTH = 512;
const KID = /^[\x21-\x7e]+$/;

type JwkReading =
  | { readonly ok: true; readonly kid: string; readonly key: VerificationKey }
  /** The message never quotes the key. */
  | { readonly ok: false; readonly message: string };

/** Reads a public key (RFC 7517). It must have a `kid`: keys are chosen by it, never tried. */
export function readJwk(jwk: JsonObject): JwkReading {
  const reading = readPublicKey(jwk);
  if (!reading.ok) return { ok: false, message: reading.message };
  const { kid } = jwk;
  if (typeof kid !== 'string' || kid.length > MAX_KID_LENGTH || !KID.test(kid))
    return {
      ok: false,
      message: `must have a kid of 1 to ${MAX_KID_LENGTH} printable ASCII characters: a key is chosen by it`,
    };
  return { ok: true, kid, key: reading.key };
}

/** What is wrong with one key of a list. */
interface KeyFault {
  readonly index: number;
  readonly message: string;
}

/** Reads a list of keys that must all be right and differ in their `kid`. */
export function readStaticKeys(jwks: readonly JsonObject[]): {
  readonly keys: ReadonlyMap<string, VerificationKey>;
  readonly faults: readonly KeyFault[];
} {
  const keys = new Map<string, VerificationKey>();
  const faults: KeyFault[] = [];
  for (const [index, jwk] of jwks.entries()) {
    const reading = readJwk(jwk);
    if (!reading.ok) faults.push({ index, message: reading.message });
    else if (keys.has(reading.kid)) faults.push({ index, message: 'must have a kid that no other key here has' });
    else keys.set(reading.kid, reading.key);
  }
  return { keys, faults };
}
