import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Contestant, Place } from './contestant.ts';

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

/** The gateway as it is deployed, or the bundle that GATEWAY_ENTRY names. Each contestant gets a configuration of its own. */
export function gatewayProgram(name: string): Contestant['program'] {
  return async (place) => {
    const config = join(place.folder, `${name}.json`);
    await writeFile(config, JSON.stringify(configuration(place)));
    return {
      args: [process.env['GATEWAY_ENTRY'] ?? ENTRY, 'serve', '--config', config],
      env: { NODE_ENV: 'production', GATEWAY_DRAIN_SECONDS: '0' },
    };
  };
}

function configuration({ port, sparePort, backendUrl, facilitatorUrl }: Place): object {
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
    resources: {
      [FREE_RESOURCE]: resource({ type: 'free' }, []),
      [PAID_RESOURCE]: resource({ type: 'fixed', amount: '0.01', currency: 'USDC' }, ['x402']),
    },
  };
}

function resource(pricing: object, payments: readonly string[]): object {
  return {
    name: 'Report',
    description: 'Prices and volumes of one city on one day',
    inputSchema: {
      type: 'object',
      properties: {
        city: { type: 'string', maxLength: 64 },
        day: { type: 'string', format: 'date' },
        currency: { type: 'string', pattern: '^[A-Z]{3}$' },
      },
      required: ['city', 'day', 'currency'],
    },
    backend: { method: 'POST', path: '/report' },
    pricing,
    expose: ['http'],
    payments,
  };
}
