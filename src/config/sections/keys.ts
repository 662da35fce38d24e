/** Secrets and keys of all sections: each has one use, and a published key an id of its own. */

import type { KeyObject } from 'node:crypto';
import { type PublicJwk, publicJwk, readSigningKey } from '../../crypto/signing-key.ts';
import { readJwk } from '../../mandates/ap2/keys.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import type { GatewayConfig } from '../document/config.ts';
import type { ConfigDocument } from '../document/document.ts';
import { KEY_TEXT } from '../document/member.ts';

const CARD_KEY = 'protocols.a2a.signingKey';
const SIGNING = 'signing';

/**
 * Shortest token without a warning, characters; required for callers of the checkout that can come
 * from outside (acp 13.7).
 */
export const STRONG_TOKEN_LENGTH = 16;

/** The use of each secret or key, by its path. */
class Uses {
  readonly #paths = new Map<string, string>();
  readonly #problems: ProblemList;

  constructor(problems: ProblemList) {
    this.#problems = problems;
  }

  /** Notes a use; a problem when there is one already. */
  protected add(path: string, name: string, message: (other: string) => string): void {
    const other = this.#paths.get(name);
    if (other !== undefined) this.#problems.add(path, message(other));
    else this.#paths.set(name, path);
  }
}

/** The secrets of a section: a peer that holds one of them must not hold another. */
export class SecretUses extends Uses {
  /** Notes a secret, in any spelling of its bytes; a problem when it has a use already. */
  note(path: string, secret: string): void {
    const name = KEY_TEXT.test(secret) ? Buffer.from(secret, 'base64').toString('base64') : secret;
    this.add(path, name, (other) => `must not be the same as ${other}: a secret is for one use`);
  }
}

/**
 * Every key of the configuration, by its coordinates and not by its id. A key has one use: a key
 * that signs checkouts verifies no mandate, and the key of one issuer none of another (ap2 7.5).
 */
export class KeyUses extends Uses {
  /** The ids of the published keys: they stand in one set. */
  readonly ids = new Set<string>();

  /** Notes a key at a path; a problem when it has a use already. */
  note(path: string, key: KeyObject | Pick<PublicJwk, 'crv' | 'x' | 'y'>): void {
    const { crv, x, y = '' } = 'x' in key ? key : key.export({ format: 'jwk' });
    this.add(path, `${crv} ${x} ${y}`, (other) => `must not be the key of ${other}: a key is for one use`);
  }
}

/** The uses of keys, beginning with that of the agent card: its section is read by itself. */
export function keyUses(document: ConfigDocument, problems: ProblemList): KeyUses {
  const uses = new KeyUses(problems);
  const pem = problems.sound(CARD_KEY) ? document.protocols.a2a.signingKey : undefined;
  const card = pem === undefined ? undefined : readSigningKey(pem);
  if (card?.ok === true) {
    uses.note(CARD_KEY, card.key.publicJwk);
    uses.ids.add(card.key.publicJwk.kid);
  }
  return uses;
}

/** Reads a public key that ES256 verifies with; undefined after a problem. */
export function readP256Jwk(
  jwk: Parameters<typeof readJwk>[0],
  path: string,
  problems: ProblemList,
): PublicJwk | undefined {
  const reading = readJwk(jwk);
  const { x, y } = jwk;
  if (!reading.ok) problems.add(path, reading.message);
  else if (reading.key.alg !== 'ES256' || typeof x !== 'string' || typeof y !== 'string')
    problems.add(path, 'must be a key of curve P-256');
  else return { kty: 'EC', crv: 'P-256', x, y, kid: reading.kid, use: 'sig', alg: 'ES256' };
  return undefined;
}

/** `signing`: undefined where nothing is signed, or after a problem. */
export function deriveSigning(
  { signing }: ConfigDocument,
  uses: KeyUses,
  problems: ProblemList,
): GatewayConfig['signing'] {
  if (signing === undefined || !problems.readable(SIGNING)) return undefined;
  if (problems.sound(`${SIGNING}.key`)) {
    const reading = readSigningKey(signing.key);
    if (reading.ok) {
      uses.note(`${SIGNING}.key`, reading.key.publicJwk);
      uses.ids.add(reading.key.publicJwk.kid);
    } else problems.add(`${SIGNING}.key`, reading.message);
  }
  const before = problems.sound(`${SIGNING}.alsoPublish`) ? signing.alsoPublish : [];
  const alsoPublish = before.flatMap((jwk, index) => {
    const path = memberPath(`${SIGNING}.alsoPublish`, index);
    const key = readP256Jwk(jwk, path, problems);
    if (key === undefined) return [];
    // Signatures name their key by its `kid`.
    if (key.kid !== publicJwk(key).kid)
      problems.add(`${path}.kid`, 'must be the RFC 7638 thumbprint of the key, as /.well-known/jwks.json had it');
    uses.note(path, key);
    uses.ids.add(key.kid);
    return [key];
  });
  if (!problems.sound(SIGNING)) return undefined;
  return { ...signing, alsoPublish };
}
