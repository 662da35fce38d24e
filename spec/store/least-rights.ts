import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const DOCUMENT = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8');

/**
 * What the document tells operators to allow: nothing outside the hash tag of the merchant, no
 * command that a gateway does not send.
 */
export function leastRights(merchantId: string): readonly string[] {
  return rightsIn('acl').map((right) => right.replace('MERCHANT', merchantId));
}

/** In a cluster the client asks who has which slot. */
export const CLUSTER_RIGHTS: readonly string[] = rightsIn('acl-cluster');

/** What a gateway can do without, and asks for all the same. */
export const OPTIONAL_RIGHTS: readonly string[] = rightsIn('acl-optional');

/** The rights of one block of the document. */
function rightsIn(block: string): readonly string[] {
  const [, text] =
    new RegExp(`\`\`\`${block}\n([^\`]*)\`\`\``).exec(DOCUMENT) ?? assert.fail(`docs/redis.md has no block ${block}`);
  return (text ?? '').split(/\s+/).filter((right) => right !== '');
}
