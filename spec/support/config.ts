/** The configuration of a gateway of the local world. */

import { writeFile } from 'node:fs/promises';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import type { Chain } from '../../tools/local-world/chain.ts';
import { sampleResources } from './resources.ts';

/** An object in the shape of the configuration file; `undefined` in overrides removes a key. */
export type ConfigObject = { readonly [key: string]: unknown };

/** What a configuration is made from. */
export interface WorldParts {
  readonly backendUrl: string;
  readonly chain: Pick<Chain, 'rpcUrl' | 'chainId' | 'token' | 'relayerKey'>;
  readonly storage: { readonly sqlite: { readonly path: string } } | { readonly redis: { readonly url: string } };
  readonly facilitator: { readonly mode: 'local' } | { readonly mode: 'remote'; readonly url: string };
  readonly ports: { readonly agents: number; readonly management: number };
  /** Default: where it listens. */
  readonly publicBaseUrl?: string;
  /** Default: a fresh address. */
  readonly payTo?: string;
  /** Further entries of `payments.x402`, each with its chain; none unless given. */
  readonly others?: readonly Entry[];
  /** Default: no operator token, so no operator routes. */
  readonly adminToken?: string;
  /** Merged in last, object by object; arrays replace. */
  readonly overrides?: ConfigObject;
}

/** For gateways that settle nothing: there is no node at this address. */
export const NO_CHAIN = {
  rpcUrl: 'http://127.0.0.1:1',
  chainId: 31_337,
  token: { address: `0x${'1'.repeat(40)}`, name: 'none', version: '1', decimals: 6 },
  relayerKey: `0x${'1'.repeat(64)}`,
} as const;

/** Changes of `payments.x402`: Base Sepolia and its USDC, whose price has a code of a currency. */
export const BASE_SEPOLIA = {
  network: 'eip155:84532',
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  assetName: 'USDC',
  assetVersion: '2',
  rpcUrl: undefined,
};

/** Currency of the sample prices. */
export const CURRENCY = 'TUSD';

/** The gateway configuration of the local world, ready for `writeConfig`. */
export function worldConfig(parts: WorldParts): ConfigObject {
  const { ports, others = [], publicBaseUrl = `http://127.0.0.1:${ports.agents}` } = parts;
  const config: ConfigObject = {
    version: 1,
    merchant: { id: 'market-shop', name: 'Market Shop', publicBaseUrl },
    server: {
      host: '127.0.0.1',
      port: ports.agents,
      allowedOrigins: [],
      ...(parts.adminToken === undefined ? {} : { adminToken: parts.adminToken }),
    },
    management: { host: '127.0.0.1', port: ports.management },
    backend: { baseUrl: parts.backendUrl },
    storage: parts.storage,
    protocols: { http: { enabled: true } },
    payments: { x402: others.length === 0 ? paidOn(parts) : [parts, ...others].map(paidOn) },
    resources: sampleResources(CURRENCY),
  };
  return parts.overrides === undefined ? config : merged(config, parts.overrides);
}

/** An entry of `payments.x402`; `offered` as the schema has it. */
type Entry = Pick<WorldParts, 'chain' | 'facilitator' | 'payTo'> & { readonly offered?: boolean };

/** One entry of `payments.x402`. */
export function paidOn({ chain, payTo, facilitator, offered }: Entry): ConfigObject {
  return {
    network: `eip155:${chain.chainId}`,
    asset: chain.token.address,
    assetName: chain.token.name,
    assetVersion: chain.token.version,
    assetDecimals: chain.token.decimals,
    currency: CURRENCY,
    payTo: payTo ?? privateKeyToAddress(generatePrivateKey()),
    maxTimeoutSeconds: 120,
    // A payee of its own for each world.
    payToExclusive: true,
    rpcUrl: chain.rpcUrl,
    ...(offered === undefined ? {} : { offered }),
    facilitator:
      facilitator.mode === 'local'
        ? { mode: 'local', privateKey: chain.relayerKey }
        : { mode: 'remote', url: facilitator.url, auth: { type: 'none' } },
  };
}

/**
 * Writes a configuration as JSON that only its owner can read: it may hold a relayer key. A gateway
 * reads YAML of this length in a quarter of its start, and a run of all specs starts hundreds.
 */
export async function writeConfig(path: string, config: ConfigObject): Promise<void> {
  await writeFile(path, JSON.stringify(config, null, 2), { mode: 0o600 });
}

/** Objects member by member; arrays replace, and `undefined` removes a member. */
export function merged(base: ConfigObject, overrides: ConfigObject): ConfigObject {
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(overrides)) {
    const present = result[key];
    if (value === undefined) delete result[key];
    else result[key] = isObject(present) && isObject(value) ? merged(present, value) : value;
  }
  return result;
}

function isObject(value: unknown): value is ConfigObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
