/** One gateway of a site: its configuration, store, payee and operator API. */

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { type Buyer, createBuyer } from '../../../spec/support/buyer.ts';
import { type ConfigObject, CURRENCY, type WorldParts } from '../../../spec/support/config.ts';
import { startFacilitator } from '../../../spec/support/facilitator.ts';
import { OPERATOR_TOKEN } from '../../../spec/support/gateway.ts';
import { type GatewayProcess, prepareGateway } from '../../../spec/support/gateway-process.ts';
import { startRedis, type TestRedis } from '../../../spec/support/redis.ts';
import { sampleResources } from '../../../spec/support/resources.ts';
import { type SampleBackend, startSampleBackend } from '../../../spec/support/sample-backend.ts';
import type { CommerceEvent } from '../../../src/events/event.ts';
import type { PaymentStep } from '../../../src/payments/settlement/attempt.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import type { Store } from '../../../src/store/documents/store.ts';
import { openStore } from '../../../src/store/open.ts';
import { type Chain, startChain } from '../../../tools/local-world/chain.ts';
import { temporaryDirectory } from '../../../tools/local-world/temporary-directory.ts';

/** One gateway: its configuration, its store, its payee. */
export interface Site {
  readonly baseUrl: string;
  readonly payTo: string;
  readonly merchantId: string;
  /** Ends with the ground at the latest. */
  start(haltAt?: PaymentStep): Promise<GatewayProcess>;
  /** A second connection to the gateway's store. */
  openStore(): Promise<Store>;
  /** Base units that reached the payee. */
  income(): Promise<bigint>;
  /** The newest 500 receipts of the operator API, newest first. */
  events(type: string): Promise<readonly CommerceEvent[]>;
  receipts(filter?: 'delivered=true' | 'delivered=false'): Promise<readonly Receipt[]>;
}

export interface SiteParts {
  readonly store: 'sqlite' | 'redis';
  readonly rail: 'local' | 'official' | { readonly url: string };
  readonly overrides?: ConfigObject;
}

const RETENTION = { eventsMaxLength: 10_000, receiptsMaxLength: 50_000, replicas: 1 } as const;

/**
 * Prepares a site; nothing runs yet. Each has a relayer key of its own: two processes must not
 * share its account nonces.
 */
export async function openSite(ground: Ground, parts: SiteParts): Promise<Site> {
  const { chain, directory, merchant: backend, redis } = ground;
  const merchantId = `shop-${randomUUID()}`;
  const payTo = privateKeyToAddress(generatePrivateKey());
  const relayerKey = generatePrivateKey();
  await chain.fundGas(privateKeyToAddress(relayerKey));
  const sqlite = { path: join(directory, `${merchantId}.db`) };
  const own = { url: redis.url };
  const storage: WorldParts['storage'] = parts.store === 'sqlite' ? { sqlite } : { redis: own };
  const prepared = await prepareGateway(directory, {
    backendUrl: backend.url,
    chain: { ...chain, relayerKey },
    storage,
    facilitator: facilitatorOf(ground, parts.rail),
    payTo,
    adminToken: OPERATOR_TOKEN,
    overrides: {
      merchant: { id: merchantId },
      resources: { echo_again: againAndAgain('echo') },
      ...parts.overrides,
    },
  });
  const { baseUrl } = prepared;
  const operator = async (path: string): Promise<unknown> => {
    const response = await fetch(`${baseUrl}${path}`, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } });
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  return {
    baseUrl,
    payTo,
    merchantId,
    async start(haltAt) {
      const gateway = await prepared.start(halted(haltAt));
      ground.keep(gateway.kill);
      return gateway;
    },
    openStore: () => {
      const engine =
        parts.store === 'sqlite' ? ({ kind: 'sqlite', ...sqlite } as const) : ({ kind: 'redis', ...own } as const);
      return openStore({ engine, ...RETENTION, merchantId });
    },
    income: () => chain.balanceOf(payTo),
    events: async (type) =>
      ((await operator(`/api/events?limit=500&type=${type}`)) as { events: CommerceEvent[] }).events,
    receipts: async (filter) =>
      (
        (await operator(`/api/receipts?limit=500${filter === undefined ? '' : `&${filter}`}`)) as {
          receipts: Receipt[];
        }
      ).receipts,
  };
}

function facilitatorOf({ facilitatorUrl }: Ground, rail: SiteParts['rail']): WorldParts['facilitator'] {
  if (rail === 'local') return { mode: 'local' };
  return { mode: 'remote', url: rail === 'official' ? facilitatorUrl : rail.url };
}

/** A sample operation that is declared safe to repeat. */
function againAndAgain(id: string): object {
  const operation = sampleResources(CURRENCY)[id] as { readonly backend: object };
  return { ...operation, backend: { ...operation.backend, idempotent: true } };
}

/**
 * All that the gateways share. Each site has its own payee and its own store, so they do not affect
 * each other.
 */
export interface Ground {
  readonly chain: Chain;
  readonly merchant: SampleBackend;
  readonly redis: TestRedis;
  /** The official facilitator. */
  readonly facilitatorUrl: string;
  readonly buyer: Buyer;
  /** For SQLite files and configurations. */
  readonly directory: string;
  /** Registers an end for `stop`, which runs even when its test fails. */
  keep(end: () => Promise<unknown>): void;
  stop(): Promise<void>;
}

/** Starts everything that is shared, in about two seconds. */
export async function startGround(): Promise<Ground> {
  await using ends = new AsyncDisposableStack();
  const directory = await temporaryDirectory(ends, 'acg-steps-');
  const chain = ends.adopt(await startChain(), ({ stop }) => stop());
  const backend = ends.adopt(await startSampleBackend(), ({ stop }) => stop());
  // With `everysec` a write may wait behind an fsync that still runs, and `kill -9` takes it along.
  const redis = ends.adopt(await startRedis({ args: ['--appendfsync', 'always'] }), ({ stop }) => stop());
  const facilitator = ends.adopt(await startFacilitator(chain), ({ stop }) => stop());
  const buyer = await createBuyer(chain);
  const kept = ends.use(new AsyncDisposableStack());
  const keep = (end: () => Promise<unknown>): void => kept.defer(async () => void (await end()));
  const started = ends.move();
  const stop = (): Promise<void> => started.disposeAsync();
  return { chain, merchant: backend, redis, facilitatorUrl: facilitator.url, buyer, directory, keep, stop };
}

const HALT = join(import.meta.dirname, 'halt.ts');

/** How a gateway is launched that ends at this step, once (`halt.ts`), or goes on. */
export function halted(at: string | undefined) {
  return at === undefined ? { env: {}, execArgv: [] } : { env: { HALT_AT: at }, execArgv: ['--import', HALT] };
}
