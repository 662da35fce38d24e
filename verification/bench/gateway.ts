/** The gateway as a contestant: what it sells, and its configuration. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Contestant, Place } from './contestant.ts';
import { INPUT_SCHEMA, tools } from './tools.ts';

export const FREE_RESOURCE = 'report';
export const PAID_RESOURCE = 'quoted';

const ENTRY = join(import.meta.dirname, '../../src/main.ts');
/** Base Sepolia and its USDC: public names only, nothing is settled here. */
const NETWORK = 'eip155:84532';
const ASSET = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
const PAYEE = `0x${'11'.repeat(20)}`;

/** The path that invokes a resource over HTTP. */
export function invocationOf(resource: string): string {
  return `/api/resources/${resource}/invoke`;
}

/** What one contestant's gateway sells, and where. */
export interface Shop {
  readonly protocols?: object;
  readonly resources: Readonly<Record<string, object>>;
}

/** One free and one paid resource over HTTP. */
export const HTTP_SHOP: Shop = {
  resources: {
    [FREE_RESOURCE]: resource({ name: 'Report', description: 'Prices and volumes of one city on one day' }, ['http']),
    [PAID_RESOURCE]: {
      ...resource({ name: 'Report', description: 'Prices and volumes of one city on one day' }, ['http']),
      pricing: { type: 'fixed', amount: '0.01', currency: 'USDC' },
      payments: ['x402'],
    },
  },
};

/** `count` free tools on one more channel. */
export function toolShop(count: number, channel: 'mcp' | 'a2a'): Shop {
  return {
    protocols: { [channel]: { enabled: true } },
    resources: Object.fromEntries(tools(count).map(({ id, ...named }) => [id, resource(named, ['http', channel])])),
  };
}

/**
 * The gateway as it is deployed, or the bundle that GATEWAY_ENTRY names. Each contestant gets a
 * configuration of its own.
 */
export function gatewayProgram(id: string, shop: Shop): Contestant['program'] {
  return async (place) => {
    const config = join(place.folder, `${id}.json`);
    await writeFile(config, JSON.stringify({ ...settings(place), ...shop }));
    return {
      args: [process.env['GATEWAY_ENTRY'] ?? ENTRY, 'serve', '--config', config],
      env: { NODE_ENV: 'production', GATEWAY_DRAIN_SECONDS: '0' },
    };
  };
}

function settings({ port, sparePort, backendUrl, facilitatorUrl }: Place): object {
  const host = '127.0.0.1';
  return {
    version: 1,
    merchant: { id: 'bench', name: 'Bench', publicBaseUrl: `http://${host}:${port}` },
    server: { host, port },
    management: { host, port: sparePort },
    backend: { baseUrl: backendUrl },
    storage: { sqlite: { path: ':memory:' } },
    payments: {
      x402: {
        network: NETWORK,
        asset: ASSET,
        assetName: 'USDC',
        assetVersion: '2',
        assetDecimals: 6,
        payTo: PAYEE,
        facilitator: { mode: 'remote', url: facilitatorUrl, auth: { type: 'none' } },
      },
    },
  };
}

function resource(named: { readonly name: string; readonly description: string }, expose: readonly string[]): object {
  return {
    ...named,
    inputSchema: INPUT_SCHEMA,
    backend: { method: 'POST', path: '/report' },
    pricing: { type: 'free' },
    expose,
    payments: [],
  };
}
