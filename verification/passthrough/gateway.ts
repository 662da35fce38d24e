/** The gateway of the slip table: what it is configured to sell, and how it decides. */

/** The gateway of the slip table: its configuration, and what a request passes in front of it. */

import { stringify } from 'yaml';
import { type ConfigObject, CURRENCY, worldConfig } from '../../spec/support/config.ts';
import { openGateway, type TestGatewayParts } from '../../spec/support/gateway.ts';
import { sampleResources } from '../../spec/support/resources.ts';
import { openRoutes } from '../../src/app/open-routes.ts';
import { parseConfig } from '../../src/config/load.ts';
import type { RequestLine, Route } from '../../src/passthrough/route.ts';
import { compileCatalogue } from '../../src/resources/catalogue.ts';

/** One sold operation: its template, and one target that names it plainly. */
export interface SoldOperation {
  readonly id: string;
  readonly method: 'GET' | 'POST';
  readonly template: string;
  readonly target: string;
  /** Whether it is sold at its own address; else only through other channels. */
  readonly inPlace: boolean;
}

export const SOLD: readonly SoldOperation[] = [
  { id: 'report', method: 'GET', template: '/reports/{city}', target: '/reports/berlin', inPlace: true },
  { id: 'prices', method: 'GET', template: '/prices.csv', target: '/prices.csv', inPlace: false },
  { id: 'confirm', method: 'POST', template: '/orders/{id}/confirm', target: '/orders/42/confirm', inPlace: true },
];

/** What stands in front of a merchant. */
interface Entrance {
  readonly port: number;
  close(): Promise<void>;
}

/** What a gateway sells, and what of its passthrough is configured. */
export interface Sale {
  readonly operations: readonly SoldOperation[];
  readonly passthrough: ConfigObject;
}

const SALE: Sale = { operations: SOLD, passthrough: {} };

export type RouteOf = (req: RequestLine) => Route;

/**
 * A gateway that sells what the merchant sells, and passes everything else on. Nothing of the table
 * reaches a chain: an unpaid call ends before it would.
 */
function saleParts(merchantPort: number, { operations, passthrough }: Sale = SALE): TestGatewayParts {
  const samples = Object.keys(sampleResources(CURRENCY)).map((id) => [id, undefined]);
  const sold = operations.map((operation) => [operation.id, resourceOf(operation)]);
  return {
    backendUrl: `http://127.0.0.1:${merchantPort}`,
    chain: {
      rpcUrl: 'http://127.0.0.1:9',
      chainId: 31_337,
      token: { address: `0x${'1'.repeat(40)}`, name: 'Test Dollar', version: '1', decimals: 6 },
      relayerKey: `0x${'1'.repeat(64)}`,
    },
    facilitator: { mode: 'remote', url: 'http://127.0.0.1:9' },
    overrides: {
      backend: { passthrough: { enabled: true, exclude: [], ...passthrough } },
      resources: Object.fromEntries([...samples, ...sold]),
    },
  };
}

function resourceOf({ id, method, template, inPlace }: SoldOperation): object {
  const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  return {
    name: id,
    description: `Sells ${template}`,
    inputSchema: {
      type: 'object',
      properties: Object.fromEntries(names.map((name) => [name, { type: 'string', minLength: 1 }])),
      required: names,
      additionalProperties: false,
    },
    backend: { method, path: template },
    pricing: { type: 'fixed', amount: '0.01', currency: CURRENCY },
    expose: inPlace ? ['http', 'origin'] : ['http'],
    payments: ['x402'],
  };
}

/** The decision that this gateway makes of each request. */
export function routesOf(merchantPort: number): RouteOf {
  const parts = { ...saleParts(merchantPort), storage: { sqlite: { path: ':memory:' } } };
  const document = worldConfig({ ...parts, ports: { agents: 8402, management: 8403 } });
  const config = parseConfig(stringify(document, { aliasDuplicateObjects: false }), {});
  const routeOf = openRoutes(config, compileCatalogue(config));
  if (routeOf === undefined) throw new Error('the passthrough is off');
  return routeOf;
}

/** The whole gateway in front of a merchant. */
export async function openSaleGateway(merchantPort: number, sale: Sale = SALE): Promise<Entrance> {
  const { url, close } = await openGateway(saleParts(merchantPort, sale));
  return { port: Number(new URL(url).port), close };
}
