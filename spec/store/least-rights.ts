import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const DOCUMENT = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8');

/** The rights of the document: only keys of the merchant, only commands that a gateway sends. */
export function leastRights(merchantId: string): readonly string[] {
  return rightsIn('acl').map((right) => right.replace('MERCHANT', merchantId));
}

/** In a cluster the client asks for the nodes of the slots. */
export const CLUSTER_RIGHTS: readonly string[] = rightsIn('acl-cluster');

/** Rights that a gateway uses if it has them. */
export const OPTIONAL_RIGHTS: readonly string[] = rightsIn('acl-optional');

/** The rights of one block of the document. */
function rightsIn(block: string): readonly string[] {
  const [, text] =
    new RegExp(`\`\`\`${block} run[^\n]*\n([^\`]*)\`\`\``).exec(DOCUMENT) ??
    assert.fail(`docs/redis.md has no block ${block}`);
  return (text ?? '').split(/\s+/).filter((right) => right !== '');
}
