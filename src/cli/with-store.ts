/** Opens the store of a configuration, for commands beside the gateways. */

import { existsSync } from 'node:fs';
import type { GatewayConfig } from '../config/document/config.ts';
import type { Store } from '../store/documents/store.ts';
import { openStore } from '../store/open.ts';
import { NoInputError, UnavailableError } from './exit-code.ts';

/** What a store is opened from. */
export type StoreSettings = Pick<GatewayConfig, 'storage' | 'merchant'>;

/**
 * For commands that only look at what is there: an embedded store that is not there would be made,
 * and a wrong path would look like a shop that owes nothing.
 * @throws NoInputError
 */
export function requireStoreFile({ storage: { engine } }: Pick<StoreSettings, 'storage'>): void {
  if (engine.kind === 'sqlite' && !existsSync(engine.path))
    throw new NoInputError(
      `storage.sqlite.path: ${engine.path}: there is no store; run this where that of the gateways is`,
    );
}

/**
 * Works with the store, and closes it.
 * @throws UnavailableError where it cannot be used
 */
export async function withStore(
  { storage, merchant }: StoreSettings,
  work: (store: Store) => Promise<void>,
): Promise<void> {
  const store = await openStore({ ...storage, merchantId: merchant.id });
  try {
    const health = await store.check();
    if (health.status !== 'ok' && health.status !== 'degraded')
      throw new UnavailableError(`the store (${store.name}) cannot be used: ${health.cause}`);
    await work(store);
  } finally {
    await store.close();
  }
}
