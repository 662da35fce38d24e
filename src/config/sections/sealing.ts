/** `storage.sealing`: the keys that encrypt what is stored. */

import type { SealingKey, SealingKeys } from '../../crypto/seal.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import type { SealingKeyDocument } from '../document/document.ts';
import { SecretUses } from '../document/secret-uses.ts';

export const SEALING_KEYS = 'storage.sealing.keys';

/** For problems and warnings where there is no key. */
export const MAKE_A_KEY = 'make a key with: openssl rand -base64 32';

/** The keys of the list. Sealed text names its key's id, so each id is there once. */
export function sealingKeys(
  documents: readonly SealingKeyDocument[] | undefined,
  problems: ProblemList,
): readonly SealingKey[] {
  if (documents === undefined || !problems.readable(SEALING_KEYS)) return [];
  const ids = new Set<string>();
  const uses = new SecretUses(problems);
  return documents.flatMap((document, index) => {
    const path = memberPath(SEALING_KEYS, index);
    if (!problems.sound(path)) return [];
    const { id, key } = document;
    if (ids.has(id)) problems.add(`${path}.id`, 'is there already; each key needs a name of its own');
    ids.add(id);
    uses.note(`${path}.key`, key);
    // Reads base64 and base64url.
    return [{ id, key: Buffer.from(key, 'base64') }];
  });
}

/**
 * The keys of checkouts, which have no other use there. Undefined: there is no key at all; a
 * problem explains how to make one.
 */
export function checkoutRing(
  ring: readonly SealingKey[],
  uses: SecretUses,
  problems: ProblemList,
): SealingKeys | undefined {
  const noted = new Set<string>();
  for (const [index, { key }] of ring.entries()) {
    const text = Buffer.from(key).toString('base64');
    // A key that the list has twice was reported with the list.
    if (!noted.has(text)) uses.note(`${memberPath(SEALING_KEYS, index)}.key`, text);
    noted.add(text);
  }
  const [first, ...others] = ring;
  if (first !== undefined) return [first, ...others];
  // Refused keys have their problems already.
  if (!problems.sound(SEALING_KEYS)) return undefined;
  const example = `[{ id: k1, key: "\${file:/run/secrets/sealing-key}" }]`;
  problems.add(SEALING_KEYS, `is missing: such as ${example}; ${MAKE_A_KEY}`);
  return undefined;
}
