/** Gateway processes over one store, before a backend that makes an order for every complete. */

import assert from 'node:assert/strict';
import { type CheckoutBackend, startCheckoutBackend } from '../support/acp/checkout-backend.ts';
import { type CheckoutGateway, startCheckoutGateway } from '../support/acp/gateway.ts';
import { startRedis } from '../support/redis.ts';
import { type Assistant, assistantAt } from './acp-assistant.ts';

/** The stores, and how many gateway processes share one here. */
export const REPLICAS = [
  ['Redis', 2],
  ['SQLite', 1],
] as const;

/** What runs, and what a spec needs to talk to it. */
export interface CheckoutReplicas {
  readonly merchant: CheckoutBackend;
  readonly gateways: readonly CheckoutGateway[];
  /** Each of its calls goes to another replica than the one before. */
  readonly assistant: Assistant;
  /** The URL for the next call. */
  next(): string;
  /** Orders made of the session of this path. */
  orders(path: string): number;
  stop(): Promise<void>;
}

/** Starts it. What had started is ended again when a later part fails. */
export async function startCheckoutReplicas([store, count]: (typeof REPLICAS)[number]): Promise<CheckoutReplicas> {
  await using ends = new AsyncDisposableStack();
  const backend = ends.adopt(await startCheckoutBackend({ dedupe: false }), ({ stop }) => stop());
  const redis = store === 'Redis' ? ends.adopt(await startRedis(), ({ stop }) => stop()) : undefined;
  const storage = redis === undefined ? undefined : { redis: { url: redis.url } };
  const acp = { authenticationErrors: true };
  const gateways: CheckoutGateway[] = [];
  for (let nth = 0; nth < count; nth += 1) {
    const gateway = await startCheckoutGateway({ backendUrl: backend.url, acp, storage });
    gateways.push(ends.adopt(gateway, ({ stop }) => stop()));
  }
  let turn = 0;
  const next = (): string => {
    turn += 1;
    return gateways[turn % count]?.url ?? assert.fail('no gateway');
  };
  const orders = (path: string): number => backend.orders(path.split('/').at(-1) ?? '');
  const started = ends.move();
  return {
    merchant: backend,
    gateways,
    assistant: assistantAt(next),
    next,
    orders,
    stop: () => started.disposeAsync(),
  };
}
