/** Keys that the configuration had once, and what takes the place of each. */

/** Path of the key -> what takes its place, as the end of the sentence "is gone: …". */
export const REMOVED_KEYS: ReadonlyMap<string, string> = new Map([
  [
    'protocols.a2a.continuation',
    'payment required ends a task; a buyer sends the whole message again with its payment (docs/protocols/a2a.md)',
  ],
  [
    'payments.x402.facilitator.relayers',
    'the account of privateKey sends for all processes, up to 100 payments in a transaction; where that is not enough, name a facilitator of your own by mode: remote and its url',
  ],
  [
    'server.workers',
    'a gateway is one process; for more than one core run more replicas over one Redis (docs/sizing.md says how many)',
  ],
  ['protocols.acp.idempotency.keys', 'storage.sealing.keys seals the answers of checkouts too; move the list there'],
]);
