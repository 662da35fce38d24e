import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CART, OTHER_TOKEN, TOKEN } from '../../../spec/adapters/acp/shop.ts';
import { type Aim, type CheckoutMerchant, startCheckoutMerchant } from '../../../spec/support/acp/merchant.ts';
import { writeConfig } from '../../../spec/support/config.ts';
import { type GatewayProcess, startGateway } from '../../../spec/support/gateway-process.ts';
import { freePorts } from '../../../spec/support/ports.ts';
import { startRedis, type TestRedis } from '../../../spec/support/redis.ts';
import { OPERATIONS } from '../../../src/checkouts/operations.ts';
import type { CheckoutStep } from '../../../src/checkouts/steps.ts';
import { type Halt, halted } from '../steps/halted.ts';

/** What the gateways of one file stand on. */
export interface Ground {
  /** It looks at no idempotency key: every complete that reaches it makes an order. */
  readonly merchant: CheckoutMerchant;
  readonly redis: TestRedis;
  /** What else has to end with the ground, whatever becomes of the test that began it. */
  keep(end: () => Promise<unknown>): void;
  /** Prepares a gateway; nothing runs yet. */
  site(parts: SiteParts): Promise<Site>;
  stop(): Promise<void>;
}

export interface SiteParts {
  /** Sites on Redis are replicas of one shop; each on SQLite is a shop of its own. */
  readonly store: 'redis' | 'sqlite';
  /** Default: the ground's merchant. Each merchant is a shop of its own, also on the same Redis. */
  readonly merchantUrl?: string;
  /** How long the merchant may take. */
  readonly timeoutMs?: number;
  /** With two, whose a session is decides who may use it. One unless said. */
  readonly clients?: 'one' | 'two';
}

/** One gateway's place: its configuration and its store. */
export interface Site {
  readonly baseUrl: string;
  /** Ends with the ground at the latest. */
  start(halt?: Halt<CheckoutStep>): Promise<GatewayProcess>;
}

/**
 * Long enough for a busy machine, milliseconds. A lease lasts 3 s longer, and most rows wait for
 * one to end.
 */
const TIMEOUT_MS = 3_000;

/** Starts everything that is shared, but no gateway. */
export async function startGround(): Promise<Ground> {
  const running: (() => Promise<unknown>)[] = [];
  const stop = async () => {
    for (const end of running.splice(0).reverse()) await end();
  };
  try {
    const directory = await mkdtemp(join(tmpdir(), 'acg-checkout-'));
    running.push(() => rm(directory, { recursive: true, force: true }));
    const merchant = await startCheckoutMerchant({ dedupe: false });
    running.push(merchant.stop);
    // With `everysec` a write may wait behind an fsync that still runs, and `kill -9` takes it
    // along.
    const redis = await startRedis({ args: ['--appendfsync', 'always'] });
    running.push(redis.stop);
    const keep = (end: () => Promise<unknown>) => void running.push(end);
    return {
      merchant,
      redis,
      keep,
      site: (parts) => prepare({ merchantUrl: merchant.url, redis, directory, keep }, parts),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * The merchant acts on the errand's next call and keeps its answer back until the result is called.
 */
export function hold({ merchant }: Ground, { aim }: { readonly aim: Aim }): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  merchant.misbehave({ kind: 'wait', acts: 'before', until: promise }, aim);
  return resolve;
}

/** Opens a session behind the gateway's back. @returns its id */
export async function openSession({ url }: CheckoutMerchant): Promise<string> {
  const response = await fetch(`${url}/checkout_sessions`, { method: 'POST', body: JSON.stringify(CART) });
  assert.equal(response.status, 201);
  return ((await response.json()) as { readonly id: string }).id;
}

async function prepare(
  ground: Pick<Ground, 'redis' | 'keep'> & { readonly merchantUrl: string; readonly directory: string },
  { store, merchantUrl = ground.merchantUrl, timeoutMs = TIMEOUT_MS, clients = 'one' }: SiteParts,
): Promise<Site> {
  const { directory, redis, keep } = ground;
  const [port = 0, management = 0] = await freePorts(2);
  const baseUrl = `http://127.0.0.1:${port}`;
  const configPath = join(directory, `${port}.yaml`);
  await writeConfig(configPath, {
    version: 1,
    merchant: { id: `shop-${new URL(merchantUrl).port}`, name: 'Market Shop', publicBaseUrl: baseUrl },
    server: { host: '127.0.0.1', port },
    management: { host: '127.0.0.1', port: management },
    backend: { baseUrl: merchantUrl },
    storage: store === 'redis' ? { redis: { url: redis.url } } : { sqlite: { path: join(directory, `${port}.db`) } },
    protocols: {
      http: { enabled: false },
      acp: { ...PROTOCOL, auth: { clients: CLIENTS[clients] }, backend: { operations: operationsWith(timeoutMs) } },
    },
  });
  return {
    baseUrl,
    async start(halt) {
      const gateway = await startGateway({ configPath, baseUrl, ...halted(halt) });
      keep(gateway.kill);
      return gateway;
    },
  };
}

const ASSISTANT = { id: 'assistant', tokens: [TOKEN] };
const CLIENTS = { one: [ASSISTANT], two: [ASSISTANT, { id: 'other', tokens: [OTHER_TOKEN] }] } as const;

const PROTOCOL = {
  enabled: true,
  idempotency: {
    secret: `secret-of-this-run-${randomUUID()}`,
    keys: [{ id: 'k1', key: Buffer.alloc(32, 7).toString('base64') }],
  },
};

function operationsWith(timeoutMs: number): object {
  return Object.fromEntries(OPERATIONS.map((operation) => [operation, { timeoutMs }]));
}
