/** What the gateways of one file of checkout deaths share, and each gateway's configuration. */

import assert from 'node:assert/strict';
import { CART, checkoutProtocol, OTHER_TOKEN, SEALED, TOKEN } from '../../../spec/adapters/acp/testbed.ts';
import { type Aim, type CheckoutBackend, startCheckoutBackend } from '../../../spec/support/acp/checkout-backend.ts';
import { NO_CHAIN } from '../../../spec/support/config.ts';
import { type GatewayProcess, prepareGateway } from '../../../spec/support/gateway-process.ts';
import { startRedis, type TestRedis } from '../../../spec/support/redis.ts';
import type { CheckoutStep } from '../../../src/checkouts/attempts.ts';
import { OPERATIONS } from '../../../src/checkouts/operations.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';
import { type Halt, halted } from '../steps/halted.ts';

/** All that the gateways share. */
export interface Ground {
  /** A backend that ignores idempotency keys: every complete that reaches it makes an order. */
  readonly backend: CheckoutBackend;
  readonly redis: TestRedis;
  /** Registers an end for `stop`, which runs even when its test fails. */
  keep(end: () => Promise<unknown>): void;
  /** Prepares a gateway; nothing runs yet. */
  site(parts: SiteParts): Promise<Site>;
  stop(): Promise<void>;
}

export interface SiteParts {
  /** Sites on Redis are replicas; each on SQLite is a gateway of its own. */
  readonly store: 'redis' | 'sqlite';
  /** Default: the backend of the ground. Each backend has a merchant id of its own. */
  readonly backendUrl?: string;
  /** The gateway's timeout for the backend. */
  readonly timeoutMs?: number;
  /** With two, a session belongs to its client. Default: one. */
  readonly clients?: 'one' | 'two';
}

/** One gateway: its configuration and its store. */
export interface Site {
  readonly baseUrl: string;
  /** Ends with the ground at the latest. */
  start(halt?: Halt<CheckoutStep>): Promise<GatewayProcess>;
}

/** Long enough for a busy machine; a lease lasts 3 s longer, and most rows wait for its end. */
const TIMEOUT_MS = 3_000;

/** Starts everything that is shared, but no gateway. */
export async function startGround(): Promise<Ground> {
  await using ends = new AsyncDisposableStack();
  const directory = await temporaryDirectory(ends, 'acg-checkout-');
  const backend = ends.adopt(await startCheckoutBackend({ dedupe: false }), ({ stop }) => stop());
  // With `everysec` a write may wait behind an fsync that still runs, and `kill -9` takes it along.
  const redis = ends.adopt(await startRedis({ args: ['--appendfsync', 'always'] }), ({ stop }) => stop());
  const kept = ends.use(new AsyncDisposableStack());
  const keep = (end: () => Promise<unknown>): void => kept.defer(async () => void (await end()));
  const shared = { backendUrl: backend.url, redis, directory, keep };
  const started = ends.move();
  return {
    backend,
    redis,
    keep,
    site: (parts) => prepare(shared, parts),
    stop: () => started.disposeAsync(),
  };
}

/**
 * The backend acts on the next such call and holds its answer until the returned function is
 * called.
 */
export function hold({ backend }: Ground, { aim }: { readonly aim: Aim }): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  backend.misbehave({ kind: 'wait', acts: 'before', until: promise }, aim);
  return resolve;
}

/** Opens a session at the backend itself. @returns its id */
export async function openSession({ url }: CheckoutBackend): Promise<string> {
  const response = await fetch(`${url}/checkout_sessions`, { method: 'POST', body: JSON.stringify(CART) });
  assert.equal(response.status, 201);
  return ((await response.json()) as { readonly id: string }).id;
}

async function prepare(
  ground: Pick<Ground, 'redis' | 'keep'> & { readonly backendUrl: string; readonly directory: string },
  { store, backendUrl = ground.backendUrl, timeoutMs = TIMEOUT_MS, clients = 'one' }: SiteParts,
): Promise<Site> {
  const { directory, redis, keep } = ground;
  const prepared = await prepareGateway(directory, {
    backendUrl: backendUrl,
    chain: NO_CHAIN,
    facilitator: { mode: 'local' },
    storage: store === 'redis' ? { redis: { url: redis.url } } : undefined,
    overrides: {
      merchant: { id: `shop-${new URL(backendUrl).port}` },
      payments: undefined,
      resources: undefined,
      storage: SEALED,
      protocols: {
        http: { enabled: false },
        acp: checkoutProtocol({
          auth: { clients: CLIENTS[clients] },
          backend: { operations: operationsWith(timeoutMs) },
        }),
      },
    },
  });
  return {
    baseUrl: prepared.baseUrl,
    async start(halt) {
      const gateway = await prepared.start(halted(halt));
      keep(gateway.kill);
      return gateway;
    },
  };
}

const ASSISTANT = { id: 'assistant', tokens: [TOKEN] };
const CLIENTS = { one: [ASSISTANT], two: [ASSISTANT, { id: 'other', tokens: [OTHER_TOKEN] }] } as const;

function operationsWith(timeoutMs: number): object {
  return Object.fromEntries(OPERATIONS.map((operation) => [operation, { timeoutMs }]));
}
