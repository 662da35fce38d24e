/** The fixture of most end-to-end specs: chain, backend, gateway in this process, buyer. */

import assert from 'node:assert/strict';
import { type Buyer, createBuyer } from './buyer.ts';
import { type Chain, startChain } from './chain.ts';
import { type Facilitator, startFacilitator } from './facilitator.ts';
import { type HostileFacilitator, startHostileFacilitator } from './hostile-facilitator.ts';
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

/** A PaymentRequired document, as far as specs read it. */
interface Envelope {
  readonly extensions?: Readonly<Record<string, { readonly info: { readonly token: string } }>>;
}

/** A 402 and its body. */
export interface Quote {
  readonly response: Response;
  readonly body: {
    readonly requestId: string;
    readonly payment: { readonly envelope: Envelope; readonly accepts: readonly Record<string, unknown>[] };
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
  const quote = (resourceId: string, input: unknown = {}): Promise<Quote> => quoteOf(shop, resourceId, input);
  return {
    chain,
    merchant,
    shop,
    buyer,
    quote,
    proof: (resourceId, input) => proofFor(shop, buyer, resourceId, input),
    income: () => chain.balanceOf(shop.config.x402?.payTo ?? ''),
    async close() {
      await shop.close();
      await Promise.all([chain.stop(), merchant.stop()]);
    },
  };
}

/** The 402 of a resource for this input. */
export async function quoteOf(shop: Pick<Shop, 'invoke'>, resourceId: string, input: unknown = {}): Promise<Quote> {
  const response = await shop.invoke(resourceId, input);
  assert.equal(response.status, 402, `${resourceId} has a price`);
  return { response, body: (await response.json()) as Quote['body'] };
}

/** A fresh PAYMENT-SIGNATURE of a buyer for a resource and input. */
export async function proofFor(
  shop: Pick<Shop, 'invoke'>,
  buyer: Pick<Buyer, 'pay'>,
  resourceId: string,
  input?: unknown,
): Promise<string> {
  return buyer.pay((await quoteOf(shop, resourceId, input)).body.payment.envelope);
}

/** A gateway that asks a scripted facilitator, and an official one on the same chain. */
export interface HostileSeller {
  readonly seller: Seller;
  readonly hostile: HostileFacilitator;
  readonly official: Facilitator;
  close(): Promise<void>;
}

/** Opens everything; scripts may relay to the official facilitator. */
export async function openHostileSeller(): Promise<HostileSeller> {
  const hostile = await startHostileFacilitator('eip155:31337');
  const seller = await openSeller({ facilitator: { mode: 'remote', url: hostile.url } });
  const official = await startFacilitator(seller.chain);
  return {
    seller,
    hostile,
    official,
    async close() {
      await seller.close();
      await Promise.all([hostile.stop(), official.stop()]);
    },
  };
}
