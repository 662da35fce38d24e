/** Keys that the configuration had once, and what takes the place of each. */

/** Path of the key -> what takes its place, as the end of the sentence "is gone: …". */
export const REMOVED_KEYS: ReadonlyMap<string, string> = new Map([
  [
    'server.workers',
    'a gateway is one process; for more than one core run more replicas over one Redis (docs/sizing.md says how many)',
  ],
  ['protocols.acp.idempotency.keys', 'storage.sealing.keys seals the answers of checkouts too; move the list there'],
]);
