import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import type { JsonObject } from '../../../src/json/json.ts';
import type { Changes } from '../document/document.ts';
import { refusalsOf } from '../refusals.ts';

/** A fresh P-256 key in PKCS#8 PEM. */
export function pem(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** A fresh public key with its name. */
export function jwk(kid: string, namedCurve = 'P-256'): JsonObject {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve });
  return { ...(publicKey.export({ format: 'jwk' }) as JsonObject), kid };
}

/** The public members of a private key. */
export function publicHalf(signingKey: string): JsonObject {
  const { d: _secret, ...members } = createPrivateKey(signingKey).export({ format: 'jwk' }) as JsonObject;
  return members;
}

export const CHECKOUT_PEM = pem();
/** From the test vectors of the did:key method. */
export const DID_KEY = 'did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169';
export const PROVIDER = { id: 'https://agents.example', keys: [jwk('provider-1')] };

/** The smallest configuration that requires mandates, anew each time, and changes of it. */
export function asking(changes: Changes = {}): Changes {
  const ap2 = { enabled: true, checkout: { signingKey: CHECKOUT_PEM }, issuers: [PROVIDER] };
  return { 'authorization.ap2': ap2, 'resources.report.authorization': { required: ['ap2'] }, ...changes };
}

export function issuers(...listed: readonly object[]): Changes {
  return { 'authorization.ap2.issuers': listed };
}

/** One issuer with one key, changed. */
export function keyed(changes: object): Changes {
  return issuers({ ...PROVIDER, keys: [{ ...jwk('k'), ...changes }] });
}

export const refuses = refusalsOf(asking, ['pass@', 'AAAA']);
