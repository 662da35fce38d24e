/** The meaning of an accepted configuration and warnings about it, for log and `acg validate`. */

import { pricesOf } from '../payments/pricing/amount.ts';
import type { DeploymentMode, FacilitatorEndpoint } from '../payments/x402/wire/settings.ts';
import { memberPath } from '../problems/problem.ts';
import { publishedPatternWarnings, unsentInput } from '../resources/check.ts';
import type { ResourceConfig } from '../resources/settings.ts';
import { staysWhole, toolInput, toolNames } from '../resources/tool-form.ts';
import { routerNotation } from '../resources/url-template.ts';
import { type ConfiguredEntry, configuredEntries, type GatewayConfig } from './document/config.ts';
import { isLoopbackUrl } from './document/endpoints.ts';
import { STRONG_TOKEN_LENGTH } from './sections/keys.ts';
import { MAKE_A_KEY, SEALING_KEYS } from './sections/storage.ts';

/** The facilitator that SDKs ask unless told otherwise. */
const TESTNET_FACILITATOR = 'x402.org';
/** The host of Coinbase's facilitator. */
const CDP_HOST = 'api.cdp.coinbase.com';
/** Fillings of the two operator tokens that are probably a mistake. */
const ROTATION_WARNINGS = {
  'next alone':
    'server.adminTokenNext: is the only operator token and works as such, because server.adminToken is missing or empty; put it there',
  'same twice':
    'server.adminTokenNext: the same token as server.adminToken, so nothing is rotated; set a new one or remove it',
} as const;

/** The warnings of an accepted configuration. Each names its setting and holds no secret. */
export function configWarnings(config: GatewayConfig): readonly string[] {
  const { resources } = config;
  return [
    ...serverWarnings(config),
    ...toolWarnings(config),
    ...resources.flatMap((resource) =>
      publishedPatternWarnings(resource).map(({ path, message }) => `resources.${resource.id}.${path}: ${message}`),
    ),
    ...resources.flatMap((resource) => [...inputWarnings(resource)]),
    ...resources.flatMap((resource) => [...pathWarnings(resource)]),
    ...paymentWarnings(config),
    ...mandateWarnings(config),
    ...checkoutWarnings(config),
    ...sealingWarnings(config),
    ...probeWarnings(config),
    ...cardWarnings(config),
  ];
}

function* serverWarnings({ server: { adminTokens, rotation } }: GatewayConfig) {
  if (adminTokens.some((token) => token.length < STRONG_TOKEN_LENGTH))
    yield `server.adminToken: shorter than ${STRONG_TOKEN_LENGTH} characters; use a long random token`;
  if (rotation !== undefined) yield ROTATION_WARNINGS[rotation];
}

/** Warns of input that a buyer pays for and the backend never sees. */
function* inputWarnings(resource: ResourceConfig) {
  const unsent = unsentInput(resource);
  const at = `${memberPath('resources', resource.id)}.backend.inputBindings`;
  if (unsent.length > 0)
    yield `${at}: sends ${unsent.join(', ')} nowhere; name each under query or body, or remove it from inputSchema`;
}

function* pathWarnings({ id, backend }: ResourceConfig) {
  const notation = routerNotation(backend.path);
  if (notation !== undefined) yield `${memberPath('resources', id)}.backend.path: ${notation}`;
}

/** Warns where tools differ from their resources, because the APIs of models take less. */
function* toolWarnings({ protocols, resources }: GatewayConfig) {
  const tools = resources.filter(({ exposedVia }) => exposedVia.includes('mcp'));
  const names = toolNames(tools.map(({ id }) => id));
  for (const { id, inputSchema = {} } of tools) {
    const name = names.get(id) ?? id;
    const { renamed, combinators } = toolInput(inputSchema);
    const others = [...renamed].map(([theirs, safe]) => `${theirs} is ${safe}`).join(', ');
    const at = memberPath('resources', id);
    const onTop = combinators.join(', ');
    if (name !== id)
      yield `${at}: its MCP tool is called ${name}, because models take at most 64 letters, digits, _ and -`;
    if (others !== '')
      yield `${at}.inputSchema: other names over MCP, because models take at most 64 letters, digits, _, . and -: ${others}`;
    if (onTop !== '')
      yield staysWhole(inputSchema)
        ? `${at}.inputSchema: has ${onTop} on its top level, for which models' APIs refuse all tools of a host; to have the MCP tool without, write no $schema and no reference into them`
        : `${at}.inputSchema: its MCP tool has no ${onTop} on the top level, for which models' APIs refuse all tools of a host; calls are checked with it all the same`;
  }
  if (protocols.mcp.enabled && tools.length === 0)
    yield 'protocols.mcp: enabled, but no resource has mcp under expose; the list of tools is empty';
}

function* cardWarnings({ protocols, resources }: GatewayConfig) {
  if (protocols.a2a.enabled && !resources.some(({ exposedVia }) => exposedVia.includes('a2a')))
    yield 'protocols.a2a: enabled, but no resource has a2a under expose; the agent card has no skill';
}

/** Warns of facilitators, nodes and addresses that are accepted and seldom meant. */
function* paymentWarnings(config: GatewayConfig) {
  const { merchant, x402 } = config;
  for (const { at, x402: entry } of configuredEntries(config)) {
    const { facilitator, rpcUrls, mode } = entry;
    const asked = facilitator.mode === 'remote' ? [facilitator, ...facilitator.fallbacks] : [];
    for (const [place, one] of asked.entries())
      yield* facilitatorWarnings(one, `${at}.facilitator${place === 0 ? '' : `.fallbacks[${place - 1}]`}`, mode);
    if (rpcUrls.some(isInClear))
      yield `${at}.rpcUrl: plain http, so answers about payments can be changed on the way; use https`;
  }
  const sold = new Set(config.resources.flatMap(({ pricing }) => pricesOf(pricing).map(({ entry = 0 }) => entry)));
  for (const [entry, { at, x402 }] of configuredEntries(config).entries())
    if (x402.offered && !sold.has(entry) && sold.size > 0)
      yield `${at}: no price is in ${x402.currencies.join(' or ')}, so nothing is sold there`;
  if (x402 !== undefined && isInClear(merchant.publicBaseUrl))
    yield 'merchant.publicBaseUrl: plain http, so proofs and answers can be read and changed on the way; use https';
}

function* facilitatorWarnings({ url, auth }: FacilitatorEndpoint, path: string, mode: DeploymentMode) {
  const { hostname } = new URL(url);
  const isTestnets = hostname === TESTNET_FACILITATOR || hostname.endsWith(`.${TESTNET_FACILITATOR}`);
  if (mode === 'mainnet' && isTestnets)
    yield `${path}.url: x402.org settles on testnets only; name a facilitator of this mainnet`;
  if (hostname === CDP_HOST && auth.type !== 'cdp')
    yield `${path}.auth: Coinbase's facilitator wants type cdp, with keyId and keySecret of an API key`;
  else if (mode === 'mainnet' && auth.type === 'none' && !isTestnets)
    yield `${path}.auth: none, and facilitators of mainnets mostly want a login; set bearer or cdp if this one does`;
  if (isInClear(url))
    yield `${path}.url: plain http, so proofs and verdicts can be read and changed on the way; use https`;
}

/** Over a network and not encrypted. */
function isInClear(url: string): boolean {
  return url.toLowerCase().startsWith('http:') && !isLoopbackUrl(url);
}

/** Warns of a missing probe where silent calls show nothing of the backend. */
function* probeWarnings({ backend, resources }: GatewayConfig) {
  const settlesAfter = resources.some(({ pricing }) => pricing.type === 'fixed' && pricing.settle === 'after');
  if (settlesAfter && backend.probePath === undefined)
    yield 'backend.probe: missing, and resources settle after their calls, whose silences show nothing of the backend; ' +
      'while it hangs, buyers of the others pay before their sales stop: set { path } of a GET that costs nothing';
}

/** Warns of payment data that is stored unencrypted. A store in memory leaves no file. */
function* sealingWarnings({ storage: { engine, sealing }, x402 }: GatewayConfig) {
  const forgets = engine.kind === 'sqlite' && engine.path === ':memory:';
  if (sealing === undefined && x402 !== undefined && !forgets)
    yield `${SEALING_KEYS}: missing, so inputs, answers and signatures of payments lie readable in the store; ${MAKE_A_KEY}`;
}

/** Warns of mandates that no resource asks for, and of keys that no mandate may be signed with. */
function* mandateWarnings({ authorization: { ap2 }, resources }: GatewayConfig) {
  if (ap2 === undefined) return;
  if (!resources.some(({ authorization }) => authorization.includes('ap2')))
    yield 'authorization.ap2: enabled, but no resource has authorization: { required: [ap2] }; no caller is asked for one';
  const { algorithms } = ap2.profile;
  for (const { id, source } of ap2.issuers)
    if (source.kind === 'static' && ![...source.keys.values()].some(({ alg }) => algorithms.has(alg)))
      yield `authorization.ap2.issuers: no key of ${id} is for an algorithm under authorization.ap2.algorithms`;
}

/** Warns of short tokens, payment data in clear, and bounds that others cut short. */
function* checkoutWarnings({ merchant, limits, protocols: { acp } }: GatewayConfig) {
  if (!acp.enabled) return;
  if (isInClear(merchant.publicBaseUrl))
    yield 'protocols.acp: merchant.publicBaseUrl is not https; tokens and payment data would travel in clear';
  if (acp.maxInFlight > limits.maxInFlight)
    yield 'protocols.acp.limits.maxInFlight: more than limits.maxInFlight admits of all calls together; it bounds nothing, lower it';
  if (acp.clients.some(({ tokens }) => tokens.some(({ length }) => length < STRONG_TOKEN_LENGTH)))
    yield `protocols.acp.auth: a token is shorter than ${STRONG_TOKEN_LENGTH} characters; use a long random one`;
}

/** How many issuers are trusted, and how many resources need a mandate. */
export function mandatesSummary({
  authorization: { ap2 },
  resources,
}: Pick<GatewayConfig, 'authorization' | 'resources'>): string {
  if (ap2 === undefined) return 'no mandates';
  const asking = resources.filter(({ authorization }) => authorization.includes('ap2')).length;
  return `ap2 mandates for ${asking} of ${resources.length} resources (issuers: ${ap2.issuers.length})`;
}

/** Says how a payment ends that the chain shows and the store has lost; several entries apart. */
export function storeLossSummary(config: Pick<GatewayConfig, 'x402' | 'alternatives'>): string {
  const entries = configuredEntries(config);
  const [first, ...others] = entries.map(lostPayments);
  if (first === undefined) return 'no payments';
  if (others.length === 0) return first;
  return entries.map(({ at }, index) => `${at}: ${[first, ...others][index]}`).join('; ');
}

function lostPayments({ at, x402: { onStoreLoss, payToExclusive, rpcUrls, facilitator } }: ConfiguredEntry): string {
  if (onStoreLoss === 'refuse') return 'refused with 409 (onStoreLoss: refuse)';
  if (rpcUrls.length === 0) return 'refused with 409, because there is no rpcUrl to ask the chain through';
  if (payToExclusive) return 'delivered once, because payTo is this store’s alone (payToExclusive: true)';
  const advice = `a merchant with one store, who sells nothing else for this payTo, sets ${at}.payToExclusive: true`;
  return facilitator.mode === 'local'
    ? `delivered once to the buyer whose token is in the calldata of our transaction, else refused with 409; ${advice}`
    : `refused with 409, because another store or seller may use payTo; ${advice}`;
}

/** The enabled adapters, their paths, and how many resources each offers. */
export function adaptersSummary({ protocols, resources }: Pick<GatewayConfig, 'protocols' | 'resources'>): string {
  const adapters = (['http', 'mcp', 'a2a'] as const)
    .filter((name) => protocols[name].enabled)
    .map((name) => {
      const offered = resources.filter(({ exposedVia }) => exposedVia.includes(name)).length;
      return `${name}${name === 'http' ? '' : ` at ${protocols[name].mountPath}`} (${offered})`;
    });
  const { acp } = protocols;
  if (!acp.enabled) return adapters.join(', ');
  const clients = acp.clients.length === 1 ? '1 client' : `${acp.clients.length} clients`;
  return [...adapters, `acp at ${acp.mountPath} (checkout for ${clients})`].join(', ');
}
