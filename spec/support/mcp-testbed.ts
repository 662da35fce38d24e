/** Gateways that sell tools over MCP, with backend, chain and buyer. */

import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { startChain } from '../../tools/local-world/chain.ts';
import { type Buyer, createBuyer } from './buyer.ts';
import { openGateway, type TestGatewayParts } from './gateway.ts';
import { startToolBackend } from './mcp-backend.ts';
import { toolGatewayConfig } from './mcp-config.ts';
import { baseSepolia, poseAsBaseSepolia } from './mcp-usdc.ts';
import type { SampleBackend } from './sample-backend.ts';

/** What runs. The gateways sell the tools of `mcp-config.ts` for USDC of a local Base Sepolia. */
export interface ToolTestbed {
  readonly merchant: SampleBackend;
  readonly buyer: Buyer;
  /** The MCP endpoint of each gateway. */
  readonly urls: readonly string[];
  /** The first of them. */
  readonly url: string;
  /** Runs a purchase. @returns what it moved */
  balances(purchase: () => Promise<void>): Promise<Moved>;
  close(): Promise<void>;
}

/** What a purchase changed. */
export interface Moved {
  /** Base units that the buyer has less. */
  readonly spent: bigint;
  /** Base units that the payee has more. */
  readonly earned: bigint;
  /** Requests that reached the merchant. */
  readonly requests: number;
}

/** How many gateways, and the store that they share. */
export interface ToolTestbedParts {
  readonly storage?: NonNullable<TestGatewayParts['storage']>;
  readonly gateways?: number;
}

/** Opens everything; default: one gateway on a store of its own. */
export async function openToolTestbed({ storage, gateways = 1 }: ToolTestbedParts = {}): Promise<ToolTestbed> {
  const [chain, backend] = await Promise.all([startChain(), startToolBackend()]);
  const usdc = await poseAsBaseSepolia(chain);
  const payTo = privateKeyToAddress(generatePrivateKey());
  const parts: TestGatewayParts = {
    chain,
    payTo,
    backendUrl: backend.url,
    facilitator: { mode: 'local' },
    overrides: { ...toolGatewayConfig(backend.url, 'USDC'), ...baseSepolia() },
    ...(storage === undefined ? {} : { storage }),
  };
  const opened = await Promise.all(Array.from({ length: gateways }, () => openGateway(parts)));
  const urls = opened.map(({ url }) => `${url}/mcp`);
  const buyer = await createBuyer(usdc);
  return {
    merchant: backend,
    buyer,
    urls,
    url: urls[0] ?? '',
    async balances(purchase) {
      const [funds, earnings] = [await buyer.balance(), await usdc.balanceOf(payTo)];
      const requests = backend.requests.length;
      await purchase();
      return {
        spent: funds - (await buyer.balance()),
        earned: (await usdc.balanceOf(payTo)) - earnings,
        requests: backend.requests.length - requests,
      };
    },
    async close() {
      await Promise.all(opened.map((gateway) => gateway.close()));
      await Promise.all([chain.stop(), backend.stop()]);
    },
  };
}
