/** Opens what a rail asks of a chain's node: its health, the asset, signatures of contracts. */

import { AssetMismatch, requireAsset } from './chain/asset-check.ts';
import { createChain } from './chain/chain.ts';
import { type ChainHealth, watchChain } from './chain/chain-health.ts';
import { inOrder } from './chain/node-order.ts';
import { createRpc, type Rpc } from './chain/rpc.ts';
import { createWalletSignatures, rememberCode, type WalletSignatures } from './chain/wallet-signature.ts';
import type { X402Config } from './wire/settings.ts';
import type { PaymentRail } from './wire/types.ts';

/** Local chains make a block when there is something to put into it, known mainnets by time. */
const BLOCKS_BY_TIME = { local: 'never', testnet: 'seen', mainnet: 'always' } as const;

/** The node of the configured chain, open. */
export interface OpenNode {
  readonly rpc: Rpc;
  readonly health: ChainHealth;
  /** Compares until it succeeds once, because the asset does not change. @throws AssetMismatch */
  compareAsset(): Promise<void>;
  /** The same with each node; one that does not answer is logged. @throws AssetMismatch */
  compareAtStart(log: { warn(facts: object, message: string): void }): Promise<void>;
  walletSignatures(facilitator: PaymentRail['facilitator']): WalletSignatures;
  close(): Promise<void>;
}

/** The configured nodes as one, and each. At least one is configured. */
export function openNodes(config: X402Config): { readonly rpc: Rpc; readonly nodes: readonly Rpc[] } {
  const nodes = config.rpcUrls.map((url) => createRpc(url));
  return { rpc: inOrder(nodes, { compare: (node) => requireAsset(node, config) }), nodes };
}

/** Opens no connection before the first call. */
export function openNode(config: X402Config): OpenNode {
  const { rpc, nodes } = openNodes(config);
  const health = watchChain(createChain(rpc, config.confirmations), { byTime: BLOCKS_BY_TIME[config.mode] });
  const { chain } = health;
  let agreed = false;
  async function compareAsset(): Promise<void> {
    if (agreed) return;
    await requireAsset(rpc, config);
    agreed = true;
  }
  return {
    rpc,
    health,
    compareAsset,
    async compareAtStart(log) {
      const compared = await Promise.allSettled(nodes.map((node) => requireAsset(node, config)));
      agreed = compared.some(({ status }) => status === 'fulfilled');
      for (const result of compared) {
        if (result.status === 'fulfilled') continue;
        if (result.reason instanceof AssetMismatch) throw result.reason;
        log.warn({ err: result.reason }, 'the asset could not be compared with the chain');
      }
    },
    walletSignatures: (facilitator) =>
      createWalletSignatures({
        rpc,
        hasCode: rememberCode((address) => chain.hasCode(address)),
        deploysWallets: facilitator === 'remote',
      }),
    close: () => rpc.close(),
  };
}
