/** Makes any configuration one of the local world: local money, a store of its own, loopback. */

import { isMapping, type Mapping } from '../../src/config/document/mapping.ts';
import type { Environment } from '../../src/config/document/read.ts';
import { environmentOverrides, expand } from '../../src/config/expand.ts';
import { DOLLAR } from '../../src/config/sections/short-form.ts';
import { ProblemList } from '../../src/problems/problem.ts';
import type { Chain } from './chain.ts';
import { LOCAL_CURRENCY } from './token.ts';

/**
 * Gets the money where a configuration names no payee: an account of anvil, which a gateway refuses
 * on every other chain, so that it cannot stay there by mistake.
 */
export const LOCAL_PAYEE = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';

/** Variables that would put something else in the place of what is made local. */
const REPLACED_VARIABLES = ['ADMIN_TOKEN', 'REDIS_URL', 'AGENT_COMMERCE_CONFIG'] as const;
/** What of `storage` and `payments.x402` is the same on every network. */
const KEPT_OF_STORAGE = ['eventsMaxLength', 'receiptsMaxLength', 'receiptsMaxAgeDays'] as const;
const KEPT_OF_X402 = ['currency', 'maxTimeoutSeconds', 'keepAnswerSeconds', 'payToExclusive', 'onStoreLoss'] as const;

/** The parts of the world that a gateway is told of. */
export interface LocalParts {
  readonly chain: Pick<Chain, 'rpcUrl' | 'chainId' | 'token' | 'relayerKey'>;
  readonly ports: { readonly agents: number; readonly management: number };
  readonly adminToken: string;
  readonly payTo: string;
  readonly databasePath: string;
  /** 32 bytes as base64. */
  readonly sealingKey: string;
}

/** What a configuration says itself, where it can be read; the world has defaults. */
interface OwnSettings {
  readonly port: number | undefined;
  readonly managementPort: number | undefined;
  readonly adminToken: string | undefined;
  readonly payTo: string | undefined;
}

/** Reads them; a placeholder that is not set counts as nothing said. */
export function ownSettings(document: unknown, env: Environment): OwnSettings {
  const overridden = environmentOverrides(document, env, new ProblemList()).apply(document);
  const said = (...path: readonly string[]): string | undefined => {
    const found = path.reduce<unknown>((value, name) => section(value)[name], overridden);
    const problems = new ProblemList();
    const { value } = expand(found, env, new Map(), problems);
    const isSaid = problems.sound('') && (typeof value === 'string' || typeof value === 'number') && value !== '';
    return isSaid ? String(value) : undefined;
  };
  const port = (text: string | undefined) => (text !== undefined && /^\d{1,5}$/.test(text) ? Number(text) : undefined);
  return {
    port: port(said('server', 'port')),
    managementPort: port(said('management', 'port')),
    adminToken: said('server', 'adminToken'),
    payTo: said('payments', 'x402', 'payTo'),
  };
}

/**
 * The document with its local parts. All else stays as it is, placeholders too; what is replaced
 * needs none of its own to be set. What is no mapping is left for validation to refuse.
 */
export function localized(document: unknown, parts: LocalParts): unknown {
  if (!isMapping(document)) return document;
  const { ports, adminToken, databasePath, sealingKey } = parts;
  const { adminTokenNext: _rotation, allowedHosts: _hosts, ...server } = section(document['server']);
  const payments = localPayments(document, parts);
  return {
    ...document,
    merchant: { ...section(document['merchant']), publicBaseUrl: localUrl(ports.agents) },
    server: { ...server, host: '127.0.0.1', port: ports.agents, adminToken },
    management: { host: '127.0.0.1', port: ports.management },
    storage: {
      ...picked(document['storage'], KEPT_OF_STORAGE),
      sqlite: { path: databasePath },
      sealing: { keys: [{ id: 'local-world', key: sealingKey }] },
    },
    ...(payments === undefined ? {} : { payments }),
  };
}

/** The environment of its gateway. */
export function localEnvironment(env: Environment): Environment {
  const replaced = new Set<string>(REPLACED_VARIABLES.flatMap((name) => [name, `${name}_FILE`]));
  const rest = Object.fromEntries(Object.entries(env).filter(([name]) => !replaced.has(name)));
  // No load balancer routes to it, so there is no traffic to wait for.
  return { ...rest, GATEWAY_DRAIN_SECONDS: '0' };
}

export function localUrl(port: number): string {
  return `http://127.0.0.1:${port}`;
}

/** Undefined where nothing has a price. Prices stay in their currency. */
function localPayments(document: Mapping, { chain, payTo }: LocalParts): Mapping | undefined {
  const x402 = section(document['payments'])['x402'];
  const prices = Object.values(section(document['resources'])).map((resource) => section(resource)['pricing']);
  const priced = prices.find((pricing) => section(pricing)['type'] === 'fixed');
  const isInDollars = prices.some((pricing) => typeof pricing === 'string' && pricing !== 'free');
  if (!isMapping(x402) && priced === undefined && !isInDollars) return undefined;
  const { token } = chain;
  return {
    x402: {
      currency: section(x402)['assetName'] ?? section(priced)['currency'] ?? (isInDollars ? DOLLAR : LOCAL_CURRENCY),
      ...picked(x402, KEPT_OF_X402),
      network: `eip155:${chain.chainId}`,
      asset: token.address,
      assetName: token.name,
      assetVersion: token.version,
      assetDecimals: token.decimals,
      payTo,
      rpcUrl: chain.rpcUrl,
      facilitator: { mode: 'local', privateKey: chain.relayerKey },
    },
  };
}

function picked(value: unknown, names: readonly string[]): Mapping {
  return Object.fromEntries(Object.entries(section(value)).filter(([name]) => names.includes(name)));
}

/** Empty for what is no mapping. */
function section(value: unknown): Mapping {
  return isMapping(value) ? value : {};
}
