/** The short form of the configuration: keys that follow from others may be left out. */

import schema from '../../../schemas/config.schema.json' with { type: 'json' };
import {
  KNOWN_NETWORKS,
  LOCAL_CHAIN_ID,
  LOCAL_RPC_PORT,
  LOCAL_TOKEN,
  NETWORK_NAMES,
  TEST_BUYER,
} from '../../payments/pricing/networks.ts';
import { memberPath, type ProblemList } from '../../problems/problem.ts';
import { isMapping, type Mapping, schemaAt } from '../document/member.ts';
import { ONLY_CLIENT } from './acp.ts';

/** Keys of `payments.x402` that a known network brings. */
const NEEDED_OF_X402 = ['asset', 'assetName', 'assetVersion', 'assetDecimals', 'facilitator'] as const;
/** Keys that only the first entry has. */
const OF_ALL_ENTRIES = ['buyerTokenSecrets', 'keepAnswerSeconds'] as const;
const USUAL_PORT = schema.properties.server.properties.port.default;
const LAST_PORT = schema.properties.server.properties.port.maximum;
const LOCAL_NETWORK = `eip155:${LOCAL_CHAIN_ID}`;
/** The currency that `$` stands for in prices. */
export const DOLLAR = 'USDC';
/** Facilitators without a login; on a mainnet the merchant chooses who moves the money. */
const FACILITATORS: ReadonlyMap<unknown, object> = new Map([
  ['eip155:84532', { mode: 'remote', url: 'https://www.x402.org/facilitator' }],
]);
const X402 = 'payments.x402';
const NO_FACILITATOR =
  'is missing: choose who settles real money, such as { mode: remote, url: https://api.cdp.coinbase.com/platform/v2/x402, auth: { type: cdp, keyId: …, keySecret: … } }';
const DOLLARS = /^\$(\d+(?:\.\d+)?)$/;

/**
 * The document in its long form. Written keys stay, and so do values that are no mapping or no
 * text, for the schema to refuse; a missing key that follows from nothing is a problem.
 */
export function longForm(document: unknown, problems: ProblemList): unknown {
  if (!isMapping(document)) return document;
  const merchant = merchantOf(document, problems);
  const payments = paymentsOf(document['payments'], problems);
  return {
    ...document,
    ...(merchant === undefined ? {} : { merchant }),
    ...storageOf(document['storage'], merchant?.['id']),
    ...(payments === undefined ? {} : { payments }),
    ...(isMapping(document['resources'])
      ? { resources: resourcesOf(document['resources'], payments?.['x402'], problems) }
      : {}),
  };
}

/** A legal id out of a name, such as `sock-shop`; empty where none follows. */
export function idOf(name: string): string {
  return name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 64)
    .replaceAll(/^-+|-+$/g, '');
}

function merchantOf({ merchant, server }: Mapping, problems: ProblemList): Mapping | undefined {
  if (!isMapping(merchant)) return undefined;
  const { name, id, publicBaseUrl } = merchant;
  const port = isMapping(server) && server['port'] !== undefined ? Number(server['port']) : USUAL_PORT;
  const derived = typeof name === 'string' ? idOf(name) : '';
  const isServed = port > 0 && port <= LAST_PORT;
  if (id === undefined && derived === '' && name !== undefined) missing('merchant', 'id', problems);
  if (publicBaseUrl === undefined && port === 0) missing('merchant', 'publicBaseUrl', problems);
  // The mistake is the port, which the schema refuses.
  if (publicBaseUrl === undefined && !isServed) problems.doubt('merchant.publicBaseUrl');
  return {
    ...(derived === '' ? {} : { id: derived }),
    ...(isServed ? { publicBaseUrl: `http://127.0.0.1:${port}` } : {}),
    ...merchant,
  };
}

/** Adds SQLite beside the configuration where no storage is written. */
function storageOf(storage: unknown, id: unknown): Mapping {
  return storage === undefined
    ? { storage: { sqlite: { path: `${typeof id === 'string' ? idOf(id) : 'gateway'}.db` } } }
    : {};
}

function paymentsOf(payments: unknown, problems: ProblemList): Mapping | undefined {
  if (!isMapping(payments)) return undefined;
  const { x402 } = payments;
  if (isMapping(x402)) return { ...payments, x402: entryOf(x402, X402, problems) };
  if (!Array.isArray(x402)) return undefined;
  const entries = x402.map((entry: unknown, index) => {
    const at = memberPath(X402, index);
    if (!isMapping(entry)) return entry;
    for (const name of index === 0 ? [] : OF_ALL_ENTRIES)
      if (entry[name] !== undefined) problems.add(`${at}.${name}`, `holds for all entries; move it to ${X402}[0]`);
    return entryOf(entry, at, problems);
  });
  return { ...payments, x402: entries };
}

/** An entry of `payments.x402`, which is `at` a path. */
function entryOf({ network: named, ...given }: Mapping, at: string, problems: ProblemList): Mapping {
  const network = typeof named === 'string' ? (NETWORK_NAMES.get(named) ?? named) : named;
  const facilitator = FACILITATORS.get(network);
  const x402: Mapping = {
    network,
    ...assetOf(network, given['asset']),
    ...(facilitator === undefined ? {} : { facilitator }),
    // For the name `local` alone: with the chain id, documents have other nodes, or none.
    ...(named === 'local' ? localSettlement(given) : {}),
    ...given,
  };
  checkNeeded(x402, at, problems);
  return x402;
}

/** The node and the relayer of `acg dev`. */
function localSettlement({ rpcUrls }: Mapping): Mapping {
  return {
    ...(rpcUrls === undefined ? { rpcUrl: `http://127.0.0.1:${LOCAL_RPC_PORT}` } : {}),
    facilitator: { mode: 'local', privateKey: TEST_BUYER.key },
  };
}

/** Refuses missing keys that the network does not bring. */
function checkNeeded(x402: Mapping, at: string, problems: ProblemList): void {
  const { network } = x402;
  const known = KNOWN_NETWORKS.get(String(network));
  const absent = NEEDED_OF_X402.filter((name) => x402[name] === undefined);
  if (known === undefined && absent.includes('asset')) {
    const list = [...NETWORK_NAMES.keys()].join(', ');
    // The schema refuses a text that is neither a name nor a CAIP-2 id.
    if (typeof network === 'string' && network.includes(':'))
      problems.add(`${at}.network`, `is unknown; known: ${list}; on another one name ${absent.join(', ')}`);
    for (const name of absent) problems.doubt(`${at}.${name}`);
    return;
  }
  for (const name of absent)
    if (name === 'facilitator' && known?.mode === 'mainnet') problems.add(`${at}.facilitator`, NO_FACILITATOR);
    else missing(at, name, problems);
}

/** The asset of the network, with its names; empty where the document has another one. */
function assetOf(network: unknown, asset: unknown): Mapping {
  const token = network === LOCAL_NETWORK ? LOCAL_TOKEN : KNOWN_NETWORKS.get(String(network))?.usdc;
  if (token === undefined || (asset !== undefined && !isSame(asset, token.address))) return {};
  return {
    asset: token.address,
    assetName: token.name,
    assetVersion: token.version,
    assetDecimals: token.decimals,
    ...(token.name === DOLLAR ? {} : { currency: DOLLAR }),
  };
}

function isSame(asset: unknown, address: string): boolean {
  return typeof asset === 'string' && asset.toLowerCase() === address.toLowerCase();
}

function resourcesOf(resources: Mapping, x402: unknown, problems: ProblemList): Mapping {
  return Object.fromEntries(
    Object.entries(resources).map(([id, resource]) => {
      if (!isMapping(resource)) return [id, resource];
      const pricing = pricingOf(resource['pricing'], x402, `${memberPath('resources', id)}.pricing`, problems);
      return [id, { name: nameOf(id), ...resource, ...(pricing === undefined ? {} : { pricing }) }];
    }),
  );
}

/** `stock-quote` is called Stock quote. */
function nameOf(id: string): string {
  const words = id.replaceAll(/[-_.]+/g, ' ').trim();
  return words === '' ? id : words[0]?.toUpperCase() + words.slice(1);
}

/** `free`, and `$0.01` of a token that is a dollar. */
function pricingOf(pricing: unknown, x402: unknown, path: string, problems: ProblemList): unknown {
  if (pricing === 'free') return { type: 'free' };
  const amount = typeof pricing === 'string' ? DOLLARS.exec(pricing)?.[1] : undefined;
  if (amount === undefined) return pricing;
  const entries = [x402].flat().filter(isMapping);
  const dollars = entries.filter(({ network, asset }) => asset === undefined || isDollar(network, asset));
  if (dollars.length === 0 && entries.length > 0) {
    const why = isMapping(x402) ? 'payments.x402.asset is another token' : 'no entry of payments.x402 has it';
    problems.add(path, `must be { type: fixed, amount: "${amount}", currency: … }: $ stands for USDC, and ${why}`);
  }
  const names = new Set(dollars.map(({ assetName, currency = assetName }) => String(currency ?? DOLLAR)));
  const [currency = DOLLAR, ...others] = names;
  if (others.length === 0) return { type: 'fixed', amount, currency };
  return { type: 'fixed', amounts: Object.fromEntries([...names].map((name) => [name, amount])) };
}

/** Whether a token is a dollar; on a chain for development every token is. */
function isDollar(network: unknown, asset: unknown): boolean {
  const known = KNOWN_NETWORKS.get(String(network));
  return known?.mode === 'local' || (known?.usdc !== undefined && isSame(asset, known.usdc.address));
}

function missing(section: string, name: string, problems: ProblemList): void {
  const wanted = schemaAt([...section.replace(/\[.*/, '').split('.'), name])?.description;
  problems.add(`${section}.${name}`, `is missing: ${wanted}`);
}

/**
 * Splits each token of two lines into the two tokens that the schema knows, before validation: a
 * mounted token that is being changed may have the one before on a second line.
 */
export function withBothLines(document: unknown, problems: ProblemList): unknown {
  if (!isMapping(document)) return document;
  const { server, protocols } = document;
  return {
    ...document,
    ...(isMapping(server) ? { server: bothAdminTokens(server, problems) } : {}),
    ...(isMapping(protocols) && isMapping(protocols['acp'])
      ? { protocols: { ...protocols, acp: bothClientTokens(protocols['acp']) } }
      : {}),
  };
}

function bothAdminTokens(server: Mapping, problems: ProblemList): Mapping {
  const lines = linesOf(server['adminToken']);
  if (lines.length !== 2) return server;
  const [adminToken, adminTokenNext] = lines;
  if (server['adminTokenNext'] !== undefined && server['adminTokenNext'] !== '')
    problems.add('server.adminTokenNext', 'is a third token beside the two lines of server.adminToken; keep two');
  return { ...server, adminToken, adminTokenNext };
}

function bothClientTokens(acp: Mapping): Mapping {
  const { auth } = acp;
  if (!isMapping(auth)) return acp;
  const { token, ...rest } = auth;
  const lines = linesOf(token);
  if (lines.length === 2 && rest['clients'] === undefined)
    return { ...acp, auth: { ...rest, clients: [{ id: ONLY_CLIENT, tokens: lines }] } };
  if (!Array.isArray(rest['clients'])) return acp;
  const clients = rest['clients'].map((client: unknown) =>
    isMapping(client) && Array.isArray(client['tokens'])
      ? { ...client, tokens: client['tokens'].flatMap(tokensOf) }
      : client,
  );
  return { ...acp, auth: { ...auth, clients } };
}

function tokensOf(token: unknown): readonly unknown[] {
  const lines = linesOf(token);
  return lines.length === 2 ? lines : [token];
}

/** The lines of a text without the newline at its end; none for what is no text. */
function linesOf(value: unknown): readonly string[] {
  return typeof value === 'string' ? value.replace(/\r?\n$/, '').split(/\r?\n/) : [];
}
