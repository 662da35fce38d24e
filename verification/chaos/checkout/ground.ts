/** What the gateways of one file of checkout deaths share, and each gateway's configuration. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { CART, checkoutProtocol, SEALED, TOKEN } from '../../../spec/adapters/acp/testbed.ts';
import {
  type Aim,
  aimed,
  type BackendCall,
  type CheckoutBackend,
  startCheckoutBackend,
} from '../../../spec/support/acp/checkout-backend.ts';
import { NO_CHAIN } from '../../../spec/support/config.ts';
import { type GatewayProcess, prepareGateway } from '../../../spec/support/gateway-process.ts';
import { startRedis, type TestRedis } from '../../../spec/support/redis.ts';
import type { CheckoutStep } from '../../../src/checkouts/attempts.ts';
import { type KeyedOperation, OPERATION_RULES, OPERATIONS, SESSION_PLACE } from '../../../src/checkouts/operations.ts';
import type { JsonObject } from '../../../src/json/json.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';
import { halted } from '../steps/site.ts';

/** All that the gateways share. */
export interface Ground {
  /** A backend that ignores idempotency keys: every complete that reaches it makes an order. */
  readonly backend: CheckoutBackend;
  readonly redis: TestRedis;
  /** Registers an end for `stop`, which runs even when its test fails. */
  keep(end: () => Promise<unknown>): void;
  /** Prepares a gateway, a replica of all others; nothing runs yet. */
  site(): Promise<Site>;
  stop(): Promise<void>;
}

/** One gateway: its configuration and its store. */
export interface Site {
  readonly baseUrl: string;
  /** Ends with the ground at the latest. */
  start(haltAt?: CheckoutStep): Promise<GatewayProcess>;
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
    site: () => prepare(shared),
    stop: () => started.disposeAsync(),
  };
}

/** Opens a session at the backend itself. @returns its id */
async function openSession({ url }: CheckoutBackend): Promise<string> {
  const response = await fetch(`${url}/checkout_sessions`, { method: 'POST', body: JSON.stringify(CART) });
  assert.equal(response.status, 201);
  return ((await response.json()) as { readonly id: string }).id;
}

async function prepare({
  backendUrl,
  directory,
  redis,
  keep,
}: Pick<Ground, 'redis' | 'keep'> & { readonly backendUrl: string; readonly directory: string }): Promise<Site> {
  const prepared = await prepareGateway(directory, {
    backendUrl,
    chain: NO_CHAIN,
    facilitator: { mode: 'local' },
    storage: { redis: { url: redis.url } },
    overrides: {
      merchant: { id: `shop-${new URL(backendUrl).port}` },
      payments: undefined,
      resources: undefined,
      storage: SEALED,
      protocols: {
        http: { enabled: false },
        acp: checkoutProtocol({
          auth: { clients: [{ id: 'assistant', tokens: [TOKEN] }] },
          backend: { operations },
        }),
      },
    },
  });
  return {
    baseUrl: prepared.baseUrl,
    async start(haltAt) {
      const gateway = await prepared.start(halted(haltAt));
      keep(gateway.kill);
      return gateway;
    },
  };
}

const operations = Object.fromEntries(OPERATIONS.map((operation) => [operation, { timeoutMs: TIMEOUT_MS }]));

/** A keyed checkout call: sent as often as needed, never changed. */
export interface KeyedCall {
  readonly operation: KeyedOperation;
  readonly sessionId: string | undefined;
  /** Below `/acp`. */
  readonly path: string;
  readonly key: string;
  readonly body: JsonObject;
  /** Matches its calls of the backend, and those of another call on the same session only. */
  readonly aim: Aim;
}

export const KEYED_OPERATIONS = OPERATIONS.filter((operation) => operation !== 'getCheckoutSession');

/** A new call, on a session of its own unless one is given. */
export async function callFor(
  { backend }: Pick<Ground, 'backend'>,
  operation: KeyedOperation,
  sessionId?: string,
): Promise<KeyedCall> {
  const key = randomUUID();
  if (operation === 'createCheckoutSession') {
    const item = `item_${key}`;
    const body = { ...CART, line_items: [{ id: item }] };
    return { operation, sessionId: undefined, path: pathOf(operation), key, body, aim: { operation, text: item } };
  }
  const id = sessionId ?? (await openSession(backend));
  return {
    operation,
    sessionId: id,
    path: pathOf(operation).replace(SESSION_PLACE, id),
    key,
    body: BODIES[operation],
    aim: { operation, sessionId: id },
  };
}

/** How often the backend was called for it. */
export function asked({ backend }: Ground, { aim }: KeyedCall): number {
  return count(backend.calls, aim);
}

/** How often its session was read. */
export function read({ backend }: Ground, { sessionId }: KeyedCall): number {
  return sessionId === undefined ? 0 : count(backend.calls, { operation: 'getCheckoutSession', sessionId });
}

function count(calls: readonly BackendCall[], aim: Aim): number {
  return calls.filter((call) => aimed(aim, call)).length;
}

function pathOf(operation: KeyedOperation): string {
  return OPERATION_RULES[operation].path;
}

const BODIES: Readonly<Record<Exclude<KeyedOperation, 'createCheckoutSession'>, JsonObject>> = {
  updateCheckoutSession: { line_items: [{ id: 'item_2' }] },
  completeCheckoutSession: {
    payment_data: {
      handler_id: 'card',
      instrument: { type: 'card', credential: { type: 'spt', token: 'tok_of_the_buyer' } },
    },
  },
  cancelCheckoutSession: { intent_trace: { reason_code: 'comparison' } },
};
