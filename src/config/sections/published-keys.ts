/** The keys of all sections that sign: each is for one use, and has an id of its own. */

import type { KeyObject } from 'node:crypto';
import { type PublicJwk, readSigningKey } from '../../crypto/signing-key.ts';
import { readJwk } from '../../mandates/ap2/trust/jwks.ts';
import type { ProblemList } from '../../problems/problem.ts';
import type { ConfigDocument } from '../document/document.ts';

const CARD_KEY = 'protocols.a2a.signingKey';

/**
 * Every key of the configuration, by its coordinates and not by its id. A key has one use: a key
 * that signs checkouts roots no mandate, and the key of one issuer roots none of another (ap2 7.5).
 */
export class KeyUses {
  /** The ids of the published keys: they stand in one set. */
  readonly ids = new Set<string>();
  readonly #paths = new Map<string, string>();
  readonly #problems: ProblemList;

  constructor(problems: ProblemList) {
    this.#problems = problems;
  }

  /** Notes a key at a path; a problem when it has a use already. */
  note(path: string, key: KeyObject | Pick<PublicJwk, 'crv' | 'x' | 'y'>): void {
    const { crv, x, y = '' } = 'x' in key ? key : key.export({ format: 'jwk' });
    const name = `${crv} ${x} ${y}`;
    const other = this.#paths.get(name);
    if (other !== undefined) this.#problems.add(path, `must not be the key of ${other}: a key is for one use`);
    else this.#paths.set(name, path);
  }
}

/** The uses of keys, beginning with that of the agent card: its section is read by itself. */
export function keyUses(document: ConfigDocument, problems: ProblemList): KeyUses {
  const uses = new KeyUses(problems);
  const pem = problems.sound(CARD_KEY) ? document.protocols?.a2a?.signingKey : undefined;
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
