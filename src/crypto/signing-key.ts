/**
 * The gateway's own P-256 keys: read from the configuration, used for checkouts, receipts and
 * discovery, and published as a key set or under the DID of the merchant's host.
 */

import { createHash, createPrivateKey, createPublicKey, type JsonWebKeyInput, type KeyObject, sign } from 'node:crypto';
import type { Json, JsonObject } from '../json/json.ts';
import { canonicalJson } from '../json/json.ts';

/** The public half of a P-256 key (RFC 7517, RFC 7518 section 6.2), ready to be published. */
export interface PublicJwk {
  readonly kty: 'EC';
  readonly crv: 'P-256';
  readonly x: string;
  readonly y: string;
  /** RFC 7638 thumbprint: the same on every replica and after every restart. */
  readonly kid: string;
  readonly use: 'sig';
  readonly alg: 'ES256';
}

/** A private key of the gateway. It only signs. */
export interface SigningKey {
  readonly publicJwk: PublicJwk;
  /** ES256 (RFC 7518, section 3.4) over the UTF-8 of a text: base64url of r and s. */
  sign(text: string): string;
}

/** A key, or the fault of its text. The message never quotes the text. */
type SigningKeyReading =
  | { readonly ok: true; readonly key: SigningKey }
  | { readonly ok: false; readonly message: string };

/** The path of the published key set. */
export const KEY_SET_PATH = '/.well-known/jwks.json';

const PKCS8 = /^-----BEGIN PRIVATE KEY-----\r?\n[A-Za-z0-9+/=\r\n]+-----END PRIVATE KEY-----\s*$/;
const HOW = 'openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 makes one';

/** Reads a PKCS#8 PEM of a P-256 key: the only curve of ES256. */
export function readSigningKey(pem: string): SigningKeyReading {
  if (!PKCS8.test(pem)) return refused(`must be one unencrypted private key in PKCS#8 PEM${hintFor(pem)}`);
  const key = readPrivateKey(pem);
  if (key === undefined) return refused('must be a private key that can be read');
  const { namedCurve } = key.asymmetricKeyDetails ?? {};
  if (key.asymmetricKeyType !== 'ec' || namedCurve !== 'prime256v1') return refused('must be a key of curve P-256');
  const { x = '', y = '' } = createPublicKey(key).export({ format: 'jwk' });
  return { ok: true, key: { publicJwk: publicJwk({ x, y }), sign: (text) => es256(key, text) } };
}

/** A key that a configuration was accepted with. @throws Error for a text that is none */
export function signingKey(pem: string): SigningKey {
  const reading = readSigningKey(pem);
  if (!reading.ok) throw new Error('the configuration let a key pass that is none');
  return reading.key;
}

/** Signs the UTF-8 of a text with a P-256 key (RFC 7518, section 3.4): base64url of r and s. */
export function es256(key: KeyObject, text: string): string {
  return sign('sha256', Buffer.from(text, 'utf8'), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url');
}

/** For the two usual mistakes: the file's name instead of its text, and the older form of a key. */
function hintFor(text: string): string {
  if (/^[^\n]{1,4096}$/.test(text) && text.includes('/')) return `; for a file write \${file:/path/of/the/key}`;
  return text.includes('BEGIN EC PRIVATE KEY') ? '; openssl pkcs8 -topk8 -nocrypt turns the older form into it' : '';
}

function refused(what: string): SigningKeyReading {
  return { ok: false, message: `${what} (${HOW})` };
}

/** The private key in a PEM or JWK; undefined for one that cannot be read. */
export function readPrivateKey(key: string | JsonWebKeyInput): KeyObject | undefined {
  try {
    return createPrivateKey(key);
  } catch {
    // The message of the library may quote the text.
    return undefined;
  }
}

/** The public key at a point of the curve (base64url), under its own id. */
export function publicJwk({ x, y }: Pick<PublicJwk, 'x' | 'y'>): PublicJwk {
  const members = { kty: 'EC', crv: 'P-256', x, y } as const;
  // RFC 7638: the required members in the order of their names, which is the canonical form.
  const kid = createHash('sha256').update(canonicalJson(members)).digest('base64url');
  return { ...members, kid, use: 'sig', alg: 'ES256' };
}

/** A flattened JWS without its payload, which is the document itself (RFC 7515, appendix F). */
interface DetachedSignature {
  readonly protected: string;
  readonly signature: string;
}

/** Signs the canonical form (RFC 8785) of a document. `keySetUrl`: where the public key is. */
export function signDocument(document: Json, key: SigningKey, keySetUrl: string): DetachedSignature {
  const header = { alg: key.publicJwk.alg, kid: key.publicJwk.kid, typ: 'JOSE', jku: keySetUrl };
  const head = encoded(JSON.stringify(header));
  return { protected: head, signature: key.sign(`${head}.${encoded(canonicalJson(document))}`) };
}

function encoded(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url');
}

/** A JWK Set (RFC 7517, section 5): with it readers verify what these keys signed. */
export function keySet(keys: readonly PublicJwk[]): { readonly keys: readonly PublicJwk[] } {
  return { keys };
}

export interface HostKey {
  /** The DID URL of the key. */
  readonly kid: string;
  /**
   * A compact JWS (RFC 7515, ES256) over the canonical form (RFC 8785) of a payload. `typ`: the
   * kind of a document that the official package does not have.
   */
  sign(payload: JsonObject, typ?: string): string;
}

/**
 * The key in a PEM, as one of the host of `publicBaseUrl`.
 * @throws Error for a key that the configuration must have refused
 */
export function hostKey(pem: string, publicBaseUrl: string): HostKey {
  const key = signingKey(pem);
  const kid = didUrlOf(didWebOf(publicBaseUrl), key.publicJwk);
  const signers = new Map<string | undefined, (payload: string) => string>();
  const signerOf = (typ: string | undefined) => {
    const signer = compactSigner(key, { alg: key.publicJwk.alg, kid, ...(typ === undefined ? {} : { typ }) });
    signers.set(typ, signer);
    return signer;
  };
  return { kid, sign: (payload, typ) => (signers.get(typ) ?? signerOf(typ))(canonicalJson(payload)) };
}

/** Signs payloads as compact JWS (RFC 7515) under one head. */
export function compactSigner(key: SigningKey, head: JsonObject): (payload: string) => string {
  const before = encoded(JSON.stringify(head));
  return function signed(payload) {
    const input = `${before}.${encoded(payload)}`;
    return `${input}.${key.sign(input)}`;
  };
}

/** The path of the document of the DID. */
export const DID_PATH = '/.well-known/did.json';

/** The did:web of the host of a URL. */
export function didWebOf(url: string): string {
  return `did:web:${encodeURIComponent(new URL(url).host)}`;
}

/** The DID URL that names a key in signatures. */
export function didUrlOf(did: string, { kid }: Pick<PublicJwk, 'kid'>): string {
  return `${did}#${kid}`;
}

/** The document of a DID whose keys make assertions (DID 1.0, sections 5.2 and 5.3.2). */
export function didDocument(did: string, keys: readonly PublicJwk[]) {
  return {
    '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/jws-2020/v1'],
    id: did,
    verificationMethod: keys.map((publicKeyJwk) => ({
      id: didUrlOf(did, publicKeyJwk),
      type: 'JsonWebKey2020',
      controller: did,
      publicKeyJwk,
    })),
    assertionMethod: keys.map((key) => didUrlOf(did, key)),
  };
}
