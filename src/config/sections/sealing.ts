/** `storage.sealing`: the keys that encrypt what is stored, and the older list of checkouts. */

import type { SealingKey, SealingKeys } from '../../crypto/seal.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import type { SealingKeyDocument } from '../document/document.ts';
import { SecretUses } from '../document/secret-uses.ts';

export const SEALING_KEYS = 'storage.sealing.keys';
/** The list for checkouts from before there was one for all; it is still read. */
export const OLD_SEALING_KEYS = 'protocols.acp.idempotency.keys';

/** For problems and warnings where there is no key. */
export const MAKE_A_KEY = 'make a key with: openssl rand -base64 32';

/** The keys of a list. Sealed text names its key's id, so each id is there once. */
export function sealingKeys(
  documents: readonly SealingKeyDocument[] | undefined,
  at: string,
  problems: ProblemList,
): readonly SealingKey[] {
  if (documents === undefined || !problems.readable(at)) return [];
  const ids = new Set<string>();
  const uses = new SecretUses(problems);
  return documents.flatMap((document, index) => {
    const path = memberPath(at, index);
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
 * The keys of checkouts: those of the storage, then those of the old list, so that what an old key
 * sealed is read while the keys move. A key may be in both lists, and has no other use. Undefined:
 * there is no key at all; a problem explains how to make one.
 */
export function checkoutRing(
  ring: readonly SealingKey[],
  old: readonly SealingKey[],
  uses: SecretUses,
  problems: ProblemList,
): SealingKeys | undefined {
  const all = [...ring];
  const noted = new Set<string>();
  const note = (path: string, { key }: SealingKey): void => {
    const text = Buffer.from(key).toString('base64');
    // A key that a list has twice was reported with the list.
    if (!noted.has(text)) uses.note(path, text);
    noted.add(text);
  };
  for (const [index, key] of ring.entries()) note(`${memberPath(SEALING_KEYS, index)}.key`, key);
  for (const [index, one] of old.entries()) {
    const path = memberPath(OLD_SEALING_KEYS, index);
    const same = ring.find(({ id }) => id === one.id);
    note(`${path}.key`, one);
    if (same === undefined) all.push(one);
    else if (!Buffer.from(same.key).equals(one.key))
      problems.add(`${path}.id`, `is the id of another key under ${SEALING_KEYS}`);
  }
  const [first, ...others] = all;
  if (first !== undefined) return [first, ...others];
  // Refused keys have their problems already.
  if (!problems.sound(SEALING_KEYS, OLD_SEALING_KEYS)) return undefined;
  const example = `[{ id: k1, key: "\${file:/run/secrets/sealing-key}" }]`;
  problems.add(SEALING_KEYS, `is missing: such as ${example}; ${MAKE_A_KEY}`);
  return undefined;
}
