/** Opens the store of a configuration, for gateways and for commands beside them. */

import { sealReceiptLog } from '../app/open-receipt-log.ts';
import type { GatewayConfig } from '../config/document/config.ts';
import { openStore, type StoreConfig } from '../store/open.ts';
import type { Store } from '../store/port/store.ts';
import { UnavailableError } from './exit-code.ts';

/** What a store is opened from. */
export type StoreSettings = Pick<GatewayConfig, 'storage' | 'merchant' | 'signing'>;

/** The store of a configuration. */
export function storeConfig({ storage, merchant, signing }: StoreSettings): StoreConfig {
  return { ...storage, merchantId: merchant.id, signing };
}

/**
 * Works with the store, and closes it.
 * @throws UnavailableError where it cannot be used
 */
export async function withStore(config: StoreSettings, work: (store: Store) => Promise<void>): Promise<void> {
  const store = await openStore(storeConfig(config));
  try {
    const health = await store.check();
    if (health.status !== 'ok' && health.status !== 'degraded')
      throw new UnavailableError(`the store (${store.name}) cannot be used: ${health.cause}`);
    try {
      await work(store);
    } finally {
      await sealReceiptLog(store, config);
    }
  } finally {
    await store.close();
  }
}
