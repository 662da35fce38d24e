/** Checks logins as the facilitator of the Coinbase Developer Platform does (x402 4.3). */

import { createPublicKey, type KeyObject, verify } from 'node:crypto';

/** The public half of an API key. */
export interface KnownKey {
  readonly alg: 'EdDSA' | 'ES256';
  readonly publicKey: KeyObject;
}

interface CheckedRequest {
  readonly authorization: string | undefined;
  /** Method, host and path, as `POST api.example/verify`. */
  readonly request: string;
}

const LONGEST_SECONDS = 120;

/** Says why a login is refused, undefined for a good one. Remembers the nonces of good ones. */
export function cdpChecker(
  keys: ReadonlyMap<string, KnownKey>,
  nowSeconds: () => number,
): (request: CheckedRequest) => string | undefined {
  const seen = new Set<string>();
  return function refusalOf({ authorization = '', request }) {
    const [, token] = /^Bearer (\S+)$/.exec(authorization) ?? [];
    const [head = '', payload = '', signature = '', ...rest] = token?.split('.') ?? [];
    if (token === undefined || signature === '' || rest.length > 0) return 'is no token of three parts';
    const [header, claims] = [read(head), read(payload)];
    const key = keys.get(String(header['kid']));
    if (key === undefined) return 'names no known key';
    if (header['alg'] !== key.alg || header['typ'] !== 'JWT') return 'is of another algorithm or type';
    const signed = Buffer.from(`${head}.${payload}`);
    const hash = key.alg === 'ES256' ? 'sha256' : null;
    const signer = { key: key.publicKey, dsaEncoding: 'ieee-p1363' } as const;
    if (!verify(hash, signed, signer, Buffer.from(signature, 'base64url'))) return 'has a wrong signature';
    const { sub, iss, nbf, exp, uris } = claims;
    if (sub !== header['kid']) return 'has another subject';
    if (iss !== 'cdp') return 'has another issuer';
    if (typeof nbf !== 'number' || typeof exp !== 'number' || exp - nbf > LONGEST_SECONDS) return 'lasts too long';
    if (nbf > nowSeconds()) return 'is not valid yet';
    if (exp <= nowSeconds()) return 'has ended';
    if (!Array.isArray(uris) || uris.length !== 1 || uris[0] !== request) return 'is for another request';
    const { nonce } = header;
    if (typeof nonce !== 'string' || !/^[0-9a-f]{32}$/.test(nonce)) return 'has no nonce';
    if (seen.has(nonce)) return 'was there before';
    seen.add(nonce);
    return undefined;
  };
}

export function publicHalf(privateKey: KeyObject, alg: KnownKey['alg']): KnownKey {
  return { alg, publicKey: createPublicKey(privateKey) };
}

function read(part: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(part, 'base64url').toString()) as Readonly<Record<string, unknown>>;
}
