/** Makes any configuration one of the local world: local money, a store of its own, loopback. */

import { isMapping, type Mapping, type Step, schemaAt, toldName } from '../../src/config/document/member.ts';
import type { Environment } from '../../src/config/document/parse.ts';
import { environmentOverrides, expand, parseConfig } from '../../src/config/load.ts';
import { DOLLAR } from '../../src/config/sections/short-form.ts';
import { ConfigError, type ConfigProblem, memberPath, ProblemList } from '../../src/problems/problem.ts';
import type { Chain } from './chain.ts';
import { LOCAL_CURRENCY } from './token.ts';

/**
 * Gets the money where a configuration names no payee: an account of anvil, which a gateway refuses
 * on every other chain, so that it cannot stay there by mistake.
 */
export const LOCAL_PAYEE = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';

/** Variables that would put something else in the place of what is made local. */
const REPLACED_VARIABLES = ['ADMIN_TOKEN', 'REDIS_URL', 'AGENT_COMMERCE_CONFIG'] as const;
const LAST_PORT = 65_535;
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

/** Reads them. */
export function ownSettings(document: unknown, env: Environment): OwnSettings {
  const overridden = withOverrides(document, env);
  const said = (...path: readonly string[]): string | undefined => {
    const value = saidBy(
      path.reduce<unknown>((outer, name) => section(outer)[name], overridden),
      env,
    );
    return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
  };
  const port = (text: string | undefined) =>
    text !== undefined && /^\d{1,5}$/.test(text) && Number(text) <= LAST_PORT ? Number(text) : undefined;
  return {
    port: port(said('server', 'port')),
    managementPort: port(said('management', 'port')),
    adminToken: said('server', 'adminToken'),
    payTo: said('payments', 'x402', 'payTo'),
  };
}

/**
 * The mistakes of a document in what it says itself, also where the world replaces it, as
 * `acg serve` refuses them. What is left out or not set is the world's to bring; `brought`: the
 * document with it.
 */
export function ownMistakes(document: unknown, brought: unknown, env: Environment): readonly ConfigProblem[] {
  if (!isMapping(document)) return [];
  const { payments, storage } = section(brought);
  const { sealing } = section(storage);
  const whole = {
    ...document,
    payments: filled(document['payments'], section(payments)),
    storage: filled(document['storage'], document['storage'] === undefined ? section(storage) : { sealing }),
  };
  const own = localEnvironment(env);
  try {
    parseConfig(JSON.stringify(whole), own);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const said = new Set(saidPaths(withOverrides(document, own), own));
    return error.problems.filter(({ path }) => said.has(path));
  }
}

/** What is no mapping stays, to be refused. */
function filled(own: unknown, more: Mapping): unknown {
  return own === undefined || isMapping(own) ? { ...more, ...own } : own;
}

function withOverrides(document: unknown, env: Environment): unknown {
  return environmentOverrides(document, env, new ProblemList()).apply(document);
}

/** What a value says; undefined for none, an empty text, and a placeholder that is not set. */
function saidBy(value: unknown, env: Environment): unknown {
  if (typeof value !== 'string') return value ?? undefined;
  const { value: text, unset } = expand(value, env, new Map(), new ProblemList());
  return text === '' || unset.size > 0 ? undefined : text;
}

/**
 * The paths of what a value says, as problems have them. A key that is not known says something by
 * itself.
 */
function* saidPaths(value: unknown, env: Environment, path = '', steps: readonly Step[] = []): Iterable<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    const key = Array.isArray(value) ? Number(name) : name;
    const at = (bare: boolean): string => memberPath(path, typeof key === 'number' ? key : toldName(key, bare));
    const inside = [...steps, key];
    if (schemaAt(inside) === undefined) yield* [at(true), at(false)];
    else if (saidBy(member, env) !== undefined) yield at(false);
    yield* saidPaths(member, env, at(false), inside);
  }
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
    ...(isMapping(document['resources'])
      ? { resources: pricedLocally(document['resources'], section(document['payments']), payments) }
      : {}),
  };
}

/** One price a resource where there may be several: the local chain has one token. */
function pricedLocally(resources: Mapping, { x402 }: Mapping, local: Mapping | undefined): Mapping {
  const { currency } = section(local?.['x402']);
  return Object.fromEntries(
    Object.entries(resources).map(([id, resource]) => {
      const { amounts, ...pricing } = section(section(resource)['pricing']);
      if (pricing['type'] !== 'fixed' || !(isMapping(amounts) || Array.isArray(x402))) return [id, resource];
      const amount = pricing['amount'] ?? section(amounts)[String(currency)] ?? Object.values(section(amounts))[0];
      return [id, { ...section(resource), pricing: { ...pricing, amount, currency } }];
    }),
  );
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

/** The entries of `payments.x402` behind the first: a local world has one chain, and one token. */
export function leftOut(document: unknown): readonly string[] {
  const [, ...others] = [section(section(document)['payments'])['x402']].flat();
  return others.map((entry, at) => `payments.x402[${at + 1}] (${section(entry)['network']})`);
}

/** Undefined where nothing has a price. Prices stay in the currency of the first entry. */
function localPayments(document: Mapping, { chain, payTo }: LocalParts): Mapping | undefined {
  const [x402] = [section(document['payments'])['x402']].flat();
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
