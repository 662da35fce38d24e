/** Keys of the parties of test mandates. */

import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { PublicJwk } from '../../../src/crypto/signing-key.ts';
import type { JsonObject } from '../../../src/json/json.ts';
import type { Algorithm } from '../../../src/mandates/ap2/keys.ts';
import type { PublicPoint } from '../../../tools/mandate/maker/contents.ts';
import type { Signer } from '../../../tools/mandate/maker/tokens.ts';

/** A fresh key of a test, with everything that one may want to do with it. */
export interface TestKey extends Signer {
  readonly publicJwk: JsonObject & PublicPoint & { readonly kid: string; readonly alg: Algorithm; readonly use: 'sig' };
  /** With the private member: what must never stand in a `cnf` or a configuration. */
  readonly privateJwk: Readonly<Record<string, string>>;
  /** PKCS#8 PEM. */
  readonly pem: string;
  readonly publicKey: KeyObject;
}

const CURVES = { ES256: 'P-256', ES384: 'P-384', ES256K: 'secp256k1' } as const;
const DIGESTS = { ES256: 'sha256', ES384: 'sha384', ES256K: 'sha256' } as const;

/** A key of that algorithm that exists nowhere else. */
export function createKey(kid: string, alg: Algorithm = 'ES256'): TestKey {
  const options = { privateKeyEncoding: { type: 'pkcs8', format: 'pem' } } as const;
  const { privateKey: pem } =
    alg === 'EdDSA'
      ? generateKeyPairSync('ed25519', { ...options, publicKeyEncoding: { type: 'spki', format: 'pem' } })
      : generateKeyPairSync('ec', {
          ...options,
          namedCurve: CURVES[alg],
          publicKeyEncoding: { type: 'spki', format: 'pem' },
        });
  const key = createPrivateKey(pem);
  const publicKey = createPublicKey(key);
  const { kty = '', crv = '', x = '', y, d = '' } = key.export({ format: 'jwk' });
  const point = { kty, crv, x, ...(y === undefined ? {} : { y }) };
  const publicJwk = { ...point, kid, alg, use: 'sig' } as const;
  return { publicJwk, privateJwk: { ...publicJwk, d }, pem, publicKey, sign: (text) => signed(alg, key, text) };
}

function signed(alg: Algorithm, key: KeyObject, text: string): string {
  const bytes = Buffer.from(text, 'utf8');
  if (alg === 'EdDSA') return sign(null, bytes, key).toString('base64url');
  return sign(DIGESTS[alg], bytes, { key, dsaEncoding: 'ieee-p1363' }).toString('base64url');
}

/** A P-256 key as the merchant publishes it. */
export function publishedJwk({ publicJwk }: TestKey): PublicJwk {
  const { x, y = '', kid } = publicJwk;
  return { kty: 'EC', crv: 'P-256', x, y, kid, use: 'sig', alg: 'ES256' };
}

/** All parties, with fresh keys. */
export interface Parties {
  /** Trusted for mandates. */
  readonly provider: TestKey;
  /** Trusted for credentials of `CREDENTIAL_VCT`. */
  readonly bank: TestKey;
  /** Trusted for mandates without `iss`. */
  readonly kidOnly: TestKey;
  /** The holder of a credential. */
  readonly user: TestKey;
  readonly agent: TestKey;
  readonly subAgent: TestKey;
  /** The merchant's, for checkouts and receipts. */
  readonly checkout: TestKey;
  /** Not trusted. */
  readonly stranger: TestKey;
}

export const PROVIDER = 'https://agents.provider.example';
export const BANK = 'https://bank.example';
export const KID_ONLY = 'kid-only-provider';
export const CREDENTIAL_VCT = 'com.emvco.dpc';

/** `alg`: of all parties but the merchant, which signs in one way only. */
export function createParties(alg: Algorithm = 'ES256'): Parties {
  return {
    provider: createKey('provider-1', alg),
    bank: createKey('bank-1', alg),
    kidOnly: createKey('kid-only-1', alg),
    user: createKey('user-1', alg),
    agent: createKey('agent-1', alg),
    subAgent: createKey('sub-agent-1', alg),
    checkout: createKey('checkout-1'),
    stranger: createKey('stranger-1', alg),
  };
}
