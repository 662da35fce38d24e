/** Keys of issuers as specs of the trust publish them. */

import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { JsonObject } from '../../../../src/json/types.ts';

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

/** A fresh public key as an issuer publishes it. */
interface IssuerKey {
  readonly jwk: JsonObject;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

export function issuerKey(kid: string, namedCurve = 'P-256'): IssuerKey {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve });
  return { jwk: { ...(publicKey.export({ format: 'jwk' }) as JsonObject), kid }, publicKey, privateKey };
}

/** A key with its private half, which no issuer may publish. */
export function leakedKey(kid: string): JsonObject {
  const { jwk, privateKey } = issuerKey(kid);
  return { ...(privateKey.export({ format: 'jwk' }) as JsonObject), ...jwk };
}

/** Writes a key of P-256 or secp256k1, or any bytes, as a Multikey text. */
export function multikeyOf(key: KeyObject | Buffer): string {
  let number = BigInt(`0x${(Buffer.isBuffer(key) ? key : coded(key)).toString('hex')}`);
  let text = '';
  for (; number > 0n; number /= 58n) text = (BASE58[Number(number % 58n)] ?? '') + text;
  return `z${text}`;
}

function coded(key: KeyObject): Buffer {
  const { crv, x = '', y = '' } = key.export({ format: 'jwk' });
  const odd = (Buffer.from(y, 'base64url').at(-1) ?? 0) % 2;
  const code = crv === 'P-256' ? [0x80, 0x24] : [0xe7, 0x01];
  return Buffer.concat([Buffer.from([...code, 2 + odd]), Buffer.from(x, 'base64url')]);
}
