/**
 * The login of Coinbase's facilitator (x402 4.3): each request brings a token of its own, signed
 * with the secret of an API key and bound to the request's method, host and path.
 */

import { createPublicKey, randomBytes, sign } from 'node:crypto';
import { es256, readPrivateKey } from '../../../crypto/signing-key.ts';

/** How long a token is accepted, seconds: the most that the facilitator takes. */
const LIFETIME_SECONDS = 120;
const NONCE_BYTES = 16;
/** Seed and public key of Ed25519, 32 bytes each, as base64. */
const ED25519_SECRET = /^[A-Za-z0-9+/]{86}==$/;
const SEED_BYTES = 32;
const PEM = /^-----BEGIN (?:EC )?PRIVATE KEY-----/;

/** The secret of an API key. It only signs. */
export interface CdpKey {
  readonly alg: 'EdDSA' | 'ES256';
  /** The signature of the UTF-8 of a text, base64url; of ES256 its r and s. */
  sign(text: string): string;
}

/** A key, or the fault of its text. The message never quotes the text. */
type CdpKeyReading = { readonly ok: true; readonly key: CdpKey } | { readonly ok: false; readonly message: string };

/** The request that a token is for: nothing of its body or query is bound. */
interface BoundRequest {
  readonly method: string;
  /** With the port where it is not that of the scheme. */
  readonly host: string;
  readonly path: string;
}

/**
 * Reads the secret of an API key: an Ed25519 key as 64 bytes in base64, or a P-256 key as PEM in
 * either form.
 */
export function readCdpKey(secret: string): CdpKeyReading {
  if (ED25519_SECRET.test(secret)) return ed25519Key(Buffer.from(secret, 'base64'));
  if (PEM.test(secret)) return p256Key(secret);
  return refused('must be the whole secret of a CDP API key: 64 bytes as base64, or a private key as PEM');
}

function ed25519Key(bytes: Buffer): CdpKeyReading {
  const seed = bytes.subarray(0, SEED_BYTES).toString('base64url');
  const x = bytes.subarray(SEED_BYTES).toString('base64url');
  const key = readPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d: seed, x }, format: 'jwk' });
  // An import that reads only the seed does not notice the public key of another seed.
  if (key === undefined || createPublicKey(key).export({ format: 'jwk' }).x !== x)
    return refused('must be the secret as it was made: its last 32 bytes are not the public key of its first 32');
  return { ok: true, key: { alg: 'EdDSA', sign: (text) => sign(null, Buffer.from(text), key).toString('base64url') } };
}

function p256Key(pem: string): CdpKeyReading {
  const key = readPrivateKey(pem);
  if (key === undefined) return refused('must be a private key that can be read');
  if (key.asymmetricKeyType !== 'ec' || key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    return refused('must be a key of curve P-256; the secret of an Ed25519 API key is not PEM but base64');
  return { ok: true, key: { alg: 'ES256', sign: (text) => es256(key, text) } };
}

function refused(message: string): CdpKeyReading {
  return { ok: false, message };
}

/**
 * A token for one request.
 * @param nowMs Unix time, milliseconds
 */
export function cdpToken(keyId: string, key: CdpKey, request: BoundRequest, nowMs: number): string {
  const nowSeconds = Math.floor(nowMs / 1_000);
  const header = { alg: key.alg, kid: keyId, typ: 'JWT', nonce: randomBytes(NONCE_BYTES).toString('hex') };
  const claims = {
    sub: keyId,
    iss: 'cdp',
    uris: [`${request.method} ${request.host}${request.path}`],
    iat: nowSeconds,
    nbf: nowSeconds,
    exp: nowSeconds + LIFETIME_SECONDS,
  };
  const signed = `${encoded(header)}.${encoded(claims)}`;
  return `${signed}.${key.sign(signed)}`;
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
