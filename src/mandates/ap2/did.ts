/** Issuers named by a DID: a `did:key` is its key, the document of a `did:web` is fetched. */

import { ECDH } from 'node:crypto';
import { isObject, type Json, type JsonObject } from '../../json/json.ts';
import { type KeysById, oneForEachId, readJwk, readPublicKey, UselessKeys } from './keys.ts';

const DID_KEY = 'did:key:';
const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
/** Longest text that is read, characters: the 35 bytes of a compressed key take 48. */
const MAX_LENGTH = 64;

interface Kind {
  /** The code of multicodec as a varint. */
  readonly prefix: string;
  jwk(bytes: Buffer): JsonObject;
}

const KINDS: readonly Kind[] = [
  { prefix: '8024', jwk: (bytes) => ({ kty: 'EC', crv: 'P-256', ...point(bytes, 'prime256v1') }) },
  { prefix: 'e701', jwk: (bytes) => ({ kty: 'EC', crv: 'secp256k1', ...point(bytes, 'secp256k1') }) },
  { prefix: 'ed01', jwk: (bytes) => ({ kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }) },
];

/** Whether an issuer's name is its key. */
export function isDidKey(id: string): boolean {
  return id.startsWith(DID_KEY);
}

/** The key in a `did:key`, under the ids that tokens may call it by; undefined when unreadable. */
export function keysOfDidKey(did: string): KeysById | undefined {
  const name = did.slice(DID_KEY.length);
  const jwk = readMultikey(name);
  if (jwk === undefined) return undefined;
  const reading = readPublicKey(jwk);
  return reading.ok ? new Map([`${did}#${name}`, `#${name}`].map((kid) => [kid, reading.key])) : undefined;
}

/**
 * The public key in a Multikey text: `z`, and base58btc of a multicodec code and the key's bytes.
 * Undefined for other codes, other lengths, points beside the curve, and any other spelling.
 */
function readMultikey(text: string): JsonObject | undefined {
  if (!text.startsWith('z') || text.length > MAX_LENGTH) return undefined;
  const bytes = readBase58(text.slice(1));
  if (bytes === undefined) return undefined;
  const kind = KINDS.find(({ prefix }) => bytes.toString('hex', 0, 2) === prefix);
  if (kind === undefined) return undefined;
  try {
    return kind.jwk(bytes.subarray(2));
  } catch {
    // Not as long as a point, or no point of the curve has this x.
    return undefined;
  }
}

/** The coordinates of a compressed point (SEC 1, 2.3.4). @throws Error for bytes that are none */
function point(bytes: Buffer, curve: string): { readonly x: string; readonly y: string } {
  const whole = ECDH.convertKey(bytes, curve, undefined, undefined, 'uncompressed');
  if (typeof whole === 'string') throw new TypeError('bytes were asked for');
  return { x: whole.toString('base64url', 1, 33), y: whole.toString('base64url', 33, 65) };
}

/** Leading `1`s are zero bytes; the rest is a number in base 58, which has one spelling. */
function readBase58(text: string): Buffer | undefined {
  let number = 0n;
  for (const char of text) {
    const digit = BASE58.indexOf(char);
    if (digit < 0) return undefined;
    number = number * 58n + BigInt(digit);
  }
  const zeros = text.length - text.replace(/^1+/, '').length;
  const hex = number === 0n ? '' : number.toString(16);
  return Buffer.concat([Buffer.alloc(zeros), Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')]);
}

const DID_WEB = 'did:web:';
const HOST = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?(?:%3A[1-9][0-9]{0,4})?$/;
const SEGMENT = /^[A-Za-z0-9._-]{1,128}$/;

export function isDidWeb(id: string): boolean {
  return id.startsWith(DID_WEB);
}

/** The URL of the DID document; undefined for another form. Hosts are lower-case names. */
export function didWebUrl(did: string): string | undefined {
  const [host = '', ...path] = did.slice(DID_WEB.length).split(':');
  if (!HOST.test(host) || path.some((segment) => !SEGMENT.test(segment) || /^\.+$/.test(segment))) return undefined;
  const folder = path.length === 0 ? '.well-known' : path.join('/');
  const url = `https://${host.replace('%3A', ':')}/${folder}/did.json`;
  return URL.canParse(url) ? url : undefined;
}

/**
 * The keys in `assertionMethod` of a DID document, by full and by relative DID URL.
 * @throws UselessKeys when the document has another subject, and when no key remains
 */
export function keysOfDidDocument(document: Json, did: string): KeysById {
  if (!isObject(document) || document['id'] !== did) throw new UselessKeys('the DID document is not about this issuer');
  const defined = methodsOf(document['verificationMethod'], did);
  const readings = listOf(document['assertionMethod'])
    .map((method) => (typeof method === 'string' ? defined.get(absolute(method, did)) : method))
    .flatMap((method) => (isObject(method) ? [jwkOf(method, did)] : []))
    .filter((jwk) => jwk !== undefined)
    .flatMap(({ kid, jwk }) => [kid, kid.slice(did.length)].map((name) => readJwk({ ...jwk, kid: name })));
  return oneForEachId(readings);
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function methodsOf(value: Json | undefined, did: string): ReadonlyMap<string, JsonObject> {
  const methods = listOf(value).filter(isObject);
  const ids = methods.map(({ id }) => (typeof id === 'string' ? absolute(id, did) : ''));
  // Two methods with one name are ambiguous.
  const unique = methods.flatMap((method, index) => {
    const id = ids[index] ?? '';
    return ids.indexOf(id) === ids.lastIndexOf(id) ? [[id, method] as const] : [];
  });
  return new Map(unique);
}

function absolute(url: string, did: string): string {
  return url.startsWith('#') ? did + url : url;
}

/** The key of a method that the subject itself controls. */
function jwkOf(method: JsonObject, did: string): { readonly kid: string; readonly jwk: JsonObject } | undefined {
  const { id, controller, publicKeyJwk, publicKeyMultibase } = method;
  const kid = typeof id === 'string' ? absolute(id, did) : '';
  if (controller !== did || !kid.startsWith(`${did}#`)) return undefined;
  if (isObject(publicKeyJwk)) return { kid, jwk: publicKeyJwk };
  const jwk = typeof publicKeyMultibase === 'string' ? readMultikey(publicKeyMultibase) : undefined;
  return jwk && { kid, jwk };
}
