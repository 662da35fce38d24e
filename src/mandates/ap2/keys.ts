/**
 * Reads public keys as JWKs, each for one algorithm, and lists of them (ap2 7.5); verifies
 * signatures with them.
 */

import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { isObject, type Json, type JsonObject } from '../../json/json.ts';
import { Refused } from './reasons.ts';
import { decodeBase64url } from './sd-jwt.ts';

/** The one algorithm that a key is for (RFC 7518, RFC 8037). */
export type Algorithm = 'ES256' | 'ES384' | 'EdDSA' | 'ES256K';

/** A public key that is ready to verify with. */
export interface VerificationKey {
  readonly alg: Algorithm;
  readonly key: KeyObject;
}

/** Keys of one issuer by their ids. */
export type KeysById = ReadonlyMap<string, VerificationKey>;

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

/** Reads a public key, as of a token's `cnf`, and refuses a faulty one. @throws Refused */
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

/** Most ids in the keys of one issuer; a DID document gives each key two. */
const MAX_KEYS = 100;

/** A document without usable keys. The message names the mistake and quotes nothing. */
export class UselessKeys extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UselessKeys';
  }
}

/**
 * The usable keys of a JWK Set (RFC 7517, section 5). Left out are keys for other purposes, keys
 * with their private half, which are public knowledge, and keys that share a `kid`.
 * @throws UselessKeys when no key remains
 */
export function keysOfJwks(document: Json): KeysById {
  const listed = isObject(document) ? document['keys'] : undefined;
  if (!Array.isArray(listed)) throw new UselessKeys('the answer is no JWK Set');
  return oneForEachId(listed.filter(isObject).map((jwk) => readJwk(jwk)));
}

/** Keys by id, without ids that occur twice. @throws UselessKeys for none, and for too many */
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
