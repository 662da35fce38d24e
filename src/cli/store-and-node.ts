/** What commands open that work on the store beside the gateways, with the chain at hand. */

import type { GatewayConfig } from '../config/document/config.ts';
import { requireAsset } from '../payments/x402/chain/asset-check.ts';
import { createRpc, type Rpc } from '../payments/x402/chain/rpc.ts';
import type { X402Config } from '../payments/x402/wire/settings.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/port/store.ts';
import { UnavailableError } from './exit-code.ts';

/**
 * Works with store and node, and closes them.
 * @throws UnavailableError where the store cannot be used; AssetMismatch; the error of the node
 */
export async function withStoreAndNode(
  { storage, merchant }: Pick<GatewayConfig, 'storage' | 'merchant'>,
  { x402, rpcUrl }: { readonly x402: X402Config; readonly rpcUrl: string },
  work: (opened: { readonly store: Store; readonly rpc: Rpc }) => Promise<void>,
): Promise<void> {
  const rpc = createRpc(rpcUrl);
  try {
    await requireAsset(rpc, x402);
    const store = await openStore({ ...storage, merchantId: merchant.id });
    try {
      const health = await store.check();
      if (health.status !== 'ok' && health.status !== 'degraded')
        throw new UnavailableError(`the store (${store.name}) cannot be used: ${health.cause}`);
      await work({ store, rpc });
    } finally {
      await store.close();
    }
  } finally {
    await rpc.close();
  }
}
