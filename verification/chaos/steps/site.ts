/** One gateway of a site: its configuration, store, payee and operator API. */

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { type ConfigObject, CURRENCY, type WorldParts } from '../../../spec/support/config.ts';
import { OPERATOR_TOKEN } from '../../../spec/support/gateway.ts';
import { type GatewayProcess, prepareGateway } from '../../../spec/support/gateway-process.ts';
import { sampleResources } from '../../../spec/support/resources.ts';
import type { CommerceEvent } from '../../../src/events/event.ts';
import type { PaymentStep } from '../../../src/payments/steps.ts';
import type { Receipt } from '../../../src/receipts/receipt.ts';
import type { Store } from '../../../src/store/documents/store.ts';
import { openStore } from '../../../src/store/open.ts';
import type { Ground } from './ground.ts';
import { type Halt, halted } from './halted.ts';

/** How a gateway of a site is run. */
export interface Launch {
  readonly halt?: Halt<PaymentStep>;
  readonly env?: Readonly<Record<string, string>>;
  readonly execArgv?: readonly string[];
}

/** One gateway: its configuration, its store, its payee. */
export interface Site {
  readonly baseUrl: string;
  readonly payTo: string;
  readonly merchantId: string;
  /** Ends with the ground at the latest. */
  start(launch?: Launch): Promise<GatewayProcess>;
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
  /** A replica of this site: same merchant, same store. */
  readonly beside?: Site;
  /** Default: the ground's Redis, over its socket. */
  readonly redisUrl?: string;
  readonly overrides?: ConfigObject;
}

const RETENTION = { eventsMaxLength: 10_000, receiptsMaxLength: 50_000, replicas: 1 } as const;

/** Where a site on SQLite has its store. */
export function databasePath({ directory }: Ground, { merchantId }: Pick<Site, 'merchantId'>): string {
  return join(directory, `${merchantId}.db`);
}

/**
 * Prepares a site; nothing runs yet. Each has a relayer key of its own: two processes must not
 * share its account nonces.
 */
export async function openSite(ground: Ground, parts: SiteParts): Promise<Site> {
  const { chain, directory, merchant: backend, redis } = ground;
  const merchantId = parts.beside?.merchantId ?? `shop-${randomUUID()}`;
  const payTo = parts.beside?.payTo ?? privateKeyToAddress(generatePrivateKey());
  const relayerKey = generatePrivateKey();
  await chain.fundGas(privateKeyToAddress(relayerKey));
  const sqlite = { path: databasePath(ground, { merchantId }) };
  const own = { url: redis.url };
  const reached = { url: parts.redisUrl ?? redis.url };
  const storage: WorldParts['storage'] = parts.store === 'sqlite' ? { sqlite } : { redis: reached };
  const prepared = await prepareGateway(directory, {
    backendUrl: backend.url,
    chain: { ...chain, relayerKey },
    storage,
    facilitator: facilitatorOf(ground, parts.rail),
    payTo,
    adminToken: OPERATOR_TOKEN,
    overrides: {
      // Replicas have one public address, which proofs contain.
      merchant: { id: merchantId, ...(parts.beside === undefined ? {} : { publicBaseUrl: parts.beside.baseUrl }) },
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
    async start({ halt, env = {}, execArgv = [] } = {}) {
      const launch = halted(halt);
      const gateway = await prepared.start({
        env: { ...launch.env, ...env },
        execArgv: [...execArgv, ...launch.execArgv],
      });
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
