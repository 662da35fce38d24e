/** Reads public keys as JWKs, each for one algorithm, and verifies signatures with them. */

import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { isObject, type Json, type JsonObject } from '../../../json/types.ts';
import { Refused } from '../model/reasons.ts';
import { decodeBase64url } from '../token/jws.ts';
import type { Algorithm, VerificationKey } from './issuer.ts';

/** A public key, or what is wrong with the text of one. The message never quotes it. */
type KeyReading =
  | { readonly ok: true; readonly key: VerificationKey }
  | { readonly ok: false; readonly fault: 'private' | 'unsupported' | 'malformed'; readonly message: string };

/** `octets` of a coordinate, and the `digest` of the algorithm; EdDSA takes none. */
interface Curve {
  readonly crv: string;
  readonly kty: 'EC' | 'OKP';
  readonly alg: Algorithm;
  readonly octets: number;
  readonly digest: string | null;
}

const CURVES: readonly Curve[] = [
  { crv: 'P-256', kty: 'EC', alg: 'ES256', octets: 32, digest: 'sha256' },
  { crv: 'P-384', kty: 'EC', alg: 'ES384', octets: 48, digest: 'sha384' },
  { crv: 'secp256k1', kty: 'EC', alg: 'ES256K', octets: 32, digest: 'sha256' },
  { crv: 'Ed25519', kty: 'OKP', alg: 'EdDSA', octets: 32, digest: null },
];
const BY_NAME: ReadonlyMap<Json | undefined, Curve> = new Map(CURVES.map((curve) => [curve.crv, curve]));
const BY_ALGORITHM: ReadonlyMap<Algorithm, Curve> = new Map(CURVES.map((curve) => [curve.alg, curve]));
/** Private parts of any key that a JWK can be (RFC 7518, sections 6.2.2, 6.3.2 and 6.4.1). */
const PRIVATE: readonly string[] = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/** Imported keys by curve and coordinates: importing costs as much as verifying (ap2 16). */
export interface ImportedKeys {
  use(point: string): KeyObject | undefined;
  add(point: string, key: KeyObject): void;
}

/**
 * Reads a public key (RFC 7517) for exactly one algorithm: no private part, a curve with its own
 * algorithm, coordinates in their one spelling and on the curve, and no member that states another
 * use than verifying. `recent` saves only the import: every JWK is checked anew.
 */
export function readPublicKey(jwk: Json, recent?: ImportedKeys): KeyReading {
  if (!isObject(jwk)) return fault('malformed', 'must be a JWK object');
  if (PRIVATE.some((member) => Object.hasOwn(jwk, member)))
    return fault('private', 'must be a public key; it has private members');
  const curve = BY_NAME.get(jwk['crv']);
  if (curve === undefined || jwk['kty'] !== curve.kty)
    return fault('unsupported', 'must be of curve P-256, P-384, secp256k1 or Ed25519');
  if (jwk['alg'] !== undefined && jwk['alg'] !== curve.alg)
    return fault('unsupported', `must have alg ${curve.alg}, the algorithm of its curve`);
  if (!isForVerifying(jwk)) return fault('malformed', 'must be a key for verifying signatures');
  const x = coordinate(jwk['x'], curve);
  const y = curve.kty === 'EC' ? coordinate(jwk['y'], curve) : '';
  if (x === undefined || y === undefined)
    return fault('malformed', `must have coordinates of ${curve.octets} bytes in base64url`);
  const key = imported(curve, x, y, recent);
  return key === undefined
    ? fault('malformed', 'must be a point of its curve')
    : { ok: true, key: { alg: curve.alg, key } };
}

/** The same for keys that a token brings (`cnf`). @throws Refused */
export function publicKeyOf(jwk: Json, recent?: ImportedKeys): VerificationKey {
  const reading = readPublicKey(jwk, recent);
  if (reading.ok) return reading.key;
  throw new Refused(reading.fault === 'unsupported' ? 'unsupported_algorithm' : 'claims_invalid');
}

/** Whether `signature` (r and s, or 64 bytes of EdDSA) is the key's over the ASCII of `signed`. */
export function verifySignature({ alg, key }: VerificationKey, signed: string, signature: Uint8Array): boolean {
  const curve = BY_ALGORITHM.get(alg);
  // The length first, so that nothing depends on what OpenSSL makes of other lengths.
  if (curve === undefined || signature.length !== 2 * curve.octets) return false;
  const data = Buffer.from(signed, 'latin1');
  return verify(curve.digest, data, { key, dsaEncoding: 'ieee-p1363' }, signature);
}

function isForVerifying({ use, key_ops: operations }: JsonObject): boolean {
  if (use !== undefined && use !== 'sig') return false;
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'));
}

function coordinate(value: Json | undefined, { octets }: Curve): string | undefined {
  return typeof value === 'string' && decodeBase64url(value)?.length === octets ? value : undefined;
}

/** Imports only the members that make the key. `y` is empty where a curve has none. */
function imported({ kty, crv }: Curve, x: string, y: string, recent: ImportedKeys | undefined): KeyObject | undefined {
  const point = `${crv}.${x}.${y}`;
  const known = recent?.use(point);
  if (known !== undefined) return known;
  try {
    const key = createPublicKey({ key: { kty, crv, x, y }, format: 'jwk' });
    recent?.add(point, key);
    return key;
  } catch {
    // Not a point of the curve.
    return undefined;
  }
}

function fault(kind: 'private' | 'unsupported' | 'malformed', message: string): KeyReading {
  return { ok: false, fault: kind, message };
}
