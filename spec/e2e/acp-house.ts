import assert from 'node:assert/strict';
import { type CheckoutGateway, startCheckoutGateway } from '../support/acp/gateway.ts';
import { type CheckoutMerchant, startCheckoutMerchant } from '../support/acp/merchant.ts';
import { startRedis } from '../support/redis.ts';
import { type Assistant, assistantAt } from './acp-assistant.ts';

/** The stores, and how many gateway processes share one here. */
export const HOUSES = [
  ['Redis', 2],
  ['SQLite', 1],
] as const;

/** Gateway processes over one store, before a merchant that makes an order for every complete. */
export interface House {
  readonly merchant: CheckoutMerchant;
  readonly gateways: readonly CheckoutGateway[];
  /** Each of its calls goes to another replica than the one before. */
  readonly assistant: Assistant;
  /** Where the next call would go. */
  next(): string;
  /** How many orders were made of the session of this path. */
  orders(path: string): number;
  stop(): Promise<void>;
}

/** Starts it. What had started is ended again when a later part fails. */
export async function openHouse([store, replicas]: (typeof HOUSES)[number]): Promise<House> {
  const running: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const end of running.splice(0).reverse()) await end();
  };
  try {
    const merchant = await startCheckoutMerchant({ dedupe: false });
    running.push(merchant.stop);
    const redis = store === 'Redis' ? await startRedis() : undefined;
    if (redis !== undefined) running.push(() => redis.stop());
    const storage = redis === undefined ? {} : { storage: { redis: { url: redis.url } } };
    const gateways: CheckoutGateway[] = [];
    for (let nth = 0; nth < replicas; nth += 1) {
      const gateway = await startCheckoutGateway({
        merchantUrl: merchant.url,
        acp: { authenticationErrors: true },
        ...storage,
      });
      running.push(gateway.stop);
      gateways.push(gateway);
    }
    let turn = 0;
    const next = (): string => {
      turn += 1;
      return gateways[turn % replicas]?.url ?? assert.fail('no gateway');
    };
    const orders = (path: string): number => merchant.orders(path.split('/').at(-1) ?? '');
    return { merchant, gateways, assistant: assistantAt(next), next, orders, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
