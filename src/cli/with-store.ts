/** Opens the store of a configuration, and its chain, for commands beside the gateways. */

import { existsSync } from 'node:fs';
import type { GatewayConfig } from '../config/document/config.ts';
import { openNodes, requireAsset } from '../payments/x402/chain/asset-check.ts';
import type { Rpc } from '../payments/x402/chain/node.ts';
import type { X402Config } from '../payments/x402/wire/settings.ts';
import type { Store } from '../store/documents/store.ts';
import { openStore } from '../store/open.ts';
import { NoInputError, UnavailableError } from './program.ts';

/** The settings that a store is opened from. */
type StoreSettings = Pick<GatewayConfig, 'storage' | 'merchant'>;

/**
 * Refuses a missing embedded store: opening would make one, and a wrong path would look like a shop
 * that owes nothing.
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

/**
 * Works with the node of an entry of `payments.x402`, and closes it.
 * @throws AssetMismatch; the error of the node
 */
export async function withNode(x402: X402Config, work: (rpc: Rpc) => Promise<void>): Promise<void> {
  const { rpc } = openNodes(x402);
  try {
    await requireAsset(rpc, x402);
    await work(rpc);
  } finally {
    await rpc.close();
  }
}
