import type { KeyObject } from 'node:crypto';
import type { PublicJwk } from '../../crypto/signing-key.ts';
import type { ProblemList } from '../../problems/problem.ts';

/**
 * Every key that the configuration names, by its coordinates and not by its id. A key has one use: a key that signs checkouts roots no
 * mandate, and the key of one issuer roots none of another (ap2 7.5).
 */
export class KeyUses {
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
