/** What commands open that work on the store beside the gateways, with the chain at hand. */

import { requireAsset } from '../payments/x402/chain/asset-check.ts';
import type { Rpc } from '../payments/x402/chain/rpc.ts';
import { openNodes } from '../payments/x402/open-node.ts';
import type { X402Config } from '../payments/x402/wire/settings.ts';
import type { Store } from '../store/documents/store.ts';
import { type StoreSettings, withStore } from './with-store.ts';

/**
 * Works with store and node, and closes them.
 * @throws UnavailableError where the store cannot be used; AssetMismatch; the error of the node
 */
export async function withStoreAndNode(
  config: StoreSettings,
  x402: X402Config,
  work: (opened: { readonly store: Store; readonly rpc: Rpc }) => Promise<void>,
): Promise<void> {
  const { rpc } = openNodes(x402);
  try {
    await requireAsset(rpc, x402);
    await withStore(config, (store) => work({ store, rpc }));
  } finally {
    await rpc.close();
  }
}
