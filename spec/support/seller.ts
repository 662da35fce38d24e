/** The fixture of most end-to-end specs: chain, backend, gateway in this process, buyer. */

import assert from 'node:assert/strict';
import { type Buyer, createBuyer } from './buyer.ts';
import { type Chain, startChain } from './chain.ts';
import { type Merchant, startMerchant } from './merchant.ts';
import { openShop, type Shop, type ShopParts } from './shop.ts';

/** What runs, and what a buyer does with it. */
export interface Seller {
  readonly chain: Chain;
  readonly merchant: Merchant;
  readonly shop: Shop;
  readonly buyer: Buyer;
  /** The 402 of a resource for this input, as an object. */
  quote(resourceId: string, input?: unknown): Promise<Quote>;
  /** A fresh PAYMENT-SIGNATURE for a resource and input. */
  proof(resourceId: string, input?: unknown): Promise<string>;
  /** Units the payee has. */
  income(): Promise<bigint>;
  close(): Promise<void>;
}

export interface Quote {
  readonly response: Response;
  readonly body: {
    readonly requestId: string;
    readonly payment: { readonly envelope: unknown; readonly accepts: readonly Record<string, unknown>[] };
    readonly error?: { readonly code: string; readonly reason: string; readonly retryable: boolean };
  };
}

/** Opens everything; `parts` may name another facilitator, storage or overrides. */
export async function openSeller(
  parts: Partial<Omit<ShopParts, 'chain' | 'merchantUrl'>> | ((chain: Chain) => Promise<Partial<ShopParts>>) = {},
): Promise<Seller> {
  const [chain, merchant] = await Promise.all([startChain(), startMerchant()]);
  const given = typeof parts === 'function' ? await parts(chain) : parts;
  const shop = await openShop({ chain, merchantUrl: merchant.url, facilitator: { mode: 'local' }, ...given });
  const buyer = await createBuyer(chain);
  const quote = async (resourceId: string, input: unknown = {}): Promise<Quote> => {
    const response = await shop.invoke(resourceId, input);
    assert.equal(response.status, 402, `${resourceId} has a price`);
    return { response, body: (await response.json()) as Quote['body'] };
  };
  return {
    chain,
    merchant,
    shop,
    buyer,
    quote,
    proof: async (resourceId, input) => buyer.pay((await quote(resourceId, input)).body.payment.envelope),
    income: () => chain.balanceOf(shop.config.x402?.payTo ?? ''),
    async close() {
      await shop.close();
      await Promise.all([chain.stop(), merchant.stop()]);
    },
  };
}
