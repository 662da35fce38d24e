/** Makes sure that no secret of the configuration has two uses. */

import type { ProblemList } from '../../problems/problem.ts';

/**
 * Shortest token without a warning, characters; required for callers of the checkout that can come
 * from outside (acp 13.7).
 */
export const STRONG_TOKEN_LENGTH = 16;

/** 32 bytes as base64 or base64url. */
const KEY_TEXT = /^[A-Za-z0-9+/_-]{43}=?$/;

/** The secrets of a section: a peer that holds one of them must not hold another. */
export class SecretUses {
  readonly #paths = new Map<string, string>();
  readonly #problems: ProblemList;

  constructor(problems: ProblemList) {
    this.#problems = problems;
  }

  /** Notes a secret, in any spelling of its bytes; a problem when it has a use already. */
  note(path: string, secret: string): void {
    const name = KEY_TEXT.test(secret) ? Buffer.from(secret, 'base64').toString('base64') : secret;
    const other = this.#paths.get(name);
    if (other !== undefined) this.#problems.add(path, `must not be the same as ${other}: a secret is for one use`);
    else this.#paths.set(name, path);
  }
}
