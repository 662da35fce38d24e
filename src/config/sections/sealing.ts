import type { SealingKey, SealingKeys } from '../../crypto/seal.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import type { SealingKeyDocument } from '../document/document.ts';
import { SecretUses } from '../document/secret-uses.ts';

/** Where the ring is configured. */
export const SEALING_KEYS = 'storage.sealing.keys';
/** Where that of checkouts was before there was one for all; it is still read. */
export const OLD_SEALING_KEYS = 'protocols.acp.idempotency.keys';

/** How to make one; `validate` and the log say it where there is none. */
export const MAKE_A_KEY = 'make a key with: openssl rand -base64 32';

/** The keys of a list. Ids stand in what was sealed: two keys of one id could not be told apart. */
export function sealingKeys(
  documents: readonly SealingKeyDocument[],
  at: string,
  problems: ProblemList,
): readonly SealingKey[] {
  const ids = new Set<string>();
  const uses = new SecretUses(problems);
  return documents.map(({ id, key }, index) => {
    const path = memberPath(at, index);
    if (ids.has(id)) problems.add(`${path}.id`, 'is there already; each key needs a name of its own');
    ids.add(id);
    uses.note(`${path}.key`, key);
    // Both alphabets are read.
    return { id, key: Buffer.from(key, 'base64') };
  });
}

/**
 * The ring of checkouts: that of the storage, and behind it what still stands under the old name,
 * so that what an old key sealed is read while the keys move. A key may stand in both places, and
 * has no other use. Undefined: there is no key at all; problems tell how to make one.
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
    // That a list has a key twice was said with the list.
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
  // Where the section was refused, what is wrong with it has been said.
  if (!problems.sound('storage')) return undefined;
  const example = `[{ id: k1, key: "\${file:/run/secrets/sealing-key}" }]`;
  problems.add(SEALING_KEYS, `is missing: such as ${example}; ${MAKE_A_KEY}`);
  return undefined;
}
