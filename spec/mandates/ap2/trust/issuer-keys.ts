import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { JsonObject } from '../../../../src/json/types.ts';

/** A fresh public key as an issuer publishes it. */
export interface IssuerKey {
  readonly jwk: JsonObject;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

export function issuerKey(kid: string, namedCurve = 'P-256'): IssuerKey {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve });
  return { jwk: { ...(publicKey.export({ format: 'jwk' }) as JsonObject), kid }, publicKey, privateKey };
}

/** The same with its private half: what no issuer may publish. */
export function leakedKey(kid: string): JsonObject {
  const { jwk, privateKey } = issuerKey(kid);
  return { ...(privateKey.export({ format: 'jwk' }) as JsonObject), ...jwk };
}
