/** What an operator should know about an accepted configuration, for the log and `acg validate`. */

import type { DeploymentMode, FacilitatorEndpoint } from '../payments/x402/wire/settings.ts';
import { memberPath } from '../problems/problem.ts';
import { publishedPatternWarnings, unsentInput } from '../resources/check.ts';
import type { ResourceConfig } from '../resources/settings.ts';
import { staysWhole, toolInput, toolNames } from '../resources/tool-form.ts';
import { routerNotation } from '../resources/url-template.ts';
import type { GatewayConfig } from './document/config.ts';
import { isLoopbackUrl } from './document/endpoints.ts';
import { STRONG_TOKEN_LENGTH } from './document/secret-uses.ts';
import { MAKE_A_KEY, SEALING_KEYS } from './sections/sealing.ts';

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

/** Each names its setting and never holds a configured value. */
export function configWarnings(config: GatewayConfig): readonly string[] {
  const { server, protocols, resources } = config;
  const weak = server.adminTokens.some((token) => token.length < STRONG_TOKEN_LENGTH);
  const tools = resources.filter(({ exposedVia }) => exposedVia.includes('mcp'));
  const noSkill = protocols.a2a.enabled && !resources.some(({ exposedVia }) => exposedVia.includes('a2a'));
  return [
    ...(weak ? [`server.adminToken: shorter than ${STRONG_TOKEN_LENGTH} characters; use a long random token`] : []),
    ...(server.rotation === undefined ? [] : [ROTATION_WARNINGS[server.rotation]]),
    ...toolWarnings(tools),
    ...(protocols.mcp.enabled && tools.length === 0
      ? ['protocols.mcp: enabled, but no resource has mcp under expose; the list of tools is empty']
      : []),
    ...resources.flatMap((resource) =>
      publishedPatternWarnings(resource).map(({ path, message }) => `resources.${resource.id}.${path}: ${message}`),
    ),
    ...resources.flatMap(unsentWarnings),
    ...resources.flatMap(({ id, backend }) => {
      const notation = routerNotation(backend.path);
      return notation === undefined ? [] : [`${memberPath('resources', id)}.backend.path: ${notation}`];
    }),
    ...paymentWarnings(config),
    ...mandateWarnings(config),
    ...checkoutWarnings(config),
    ...sealingWarnings(config),
    ...probeWarnings(config),
    ...(noSkill ? ['protocols.a2a: enabled, but no resource has a2a under expose; the agent card has no skill'] : []),
  ];
}

/** Warns of input that a buyer pays for and the backend never sees. */
function unsentWarnings(resource: ResourceConfig): readonly string[] {
  const unsent = unsentInput(resource);
  if (unsent.length === 0) return [];
  const at = `${memberPath('resources', resource.id)}.backend.inputBindings`;
  return [`${at}: sends ${unsent.join(', ')} nowhere; name each under query or body, or remove it from inputSchema`];
}

/** Warns where tools differ from their resources, because the APIs of models take less. */
function toolWarnings(tools: readonly ResourceConfig[]): readonly string[] {
  const names = toolNames(tools.map(({ id }) => id));
  return tools.flatMap(({ id, inputSchema }) => {
    const name = names.get(id) ?? id;
    const { renamed, combinators } = toolInput(inputSchema ?? {});
    const [property, ...more] = [...renamed].map(([theirs, safe]) => `${theirs} is ${safe}`);
    const at = memberPath('resources', id);
    const stays = staysWhole(inputSchema ?? {});
    return [
      ...(name === id
        ? []
        : [`${at}: its MCP tool is called ${name}, because models take at most 64 letters, digits, _ and -`]),
      ...(property === undefined
        ? []
        : [
            `${at}.inputSchema: other names over MCP, because models take at most 64 letters, digits, _, . and -: ${[property, ...more].join(', ')}`,
          ]),
      ...(combinators.length === 0
        ? []
        : [
            stays
              ? `${at}.inputSchema: has ${combinators.join(', ')} on its top level, for which models' APIs refuse all tools of a host; to have the MCP tool without, write no $schema and no reference into them`
              : `${at}.inputSchema: its MCP tool has no ${combinators.join(', ')} on the top level, for which models' APIs refuse all tools of a host; calls are checked with it all the same`,
          ]),
    ];
  });
}

/** Warns of facilitators, nodes and addresses that are accepted and seldom meant. */
function paymentWarnings({ merchant, x402 }: GatewayConfig): readonly string[] {
  if (x402 === undefined) return [];
  const { facilitator, rpcUrls, mode } = x402;
  const asked = facilitator.mode === 'remote' ? [facilitator, ...facilitator.fallbacks] : [];
  return [
    ...asked.flatMap((one, place) =>
      facilitatorWarnings(one, `payments.x402.facilitator${place === 0 ? '' : `.fallbacks[${place - 1}]`}`, mode),
    ),
    ...(rpcUrls.some(isInClear)
      ? ['payments.x402.rpcUrl: plain http, so answers about payments can be changed on the way; use https']
      : []),
    ...(isInClear(merchant.publicBaseUrl)
      ? ['merchant.publicBaseUrl: plain http, so proofs and answers can be read and changed on the way; use https']
      : []),
  ];
}

function facilitatorWarnings(
  { url, auth }: FacilitatorEndpoint,
  path: string,
  mode: DeploymentMode,
): readonly string[] {
  const { hostname } = new URL(url);
  const isTestnets = hostname === TESTNET_FACILITATOR || hostname.endsWith(`.${TESTNET_FACILITATOR}`);
  const login = (): readonly string[] => {
    if (hostname === CDP_HOST && auth.type !== 'cdp')
      return [`${path}.auth: Coinbase's facilitator wants type cdp, with keyId and keySecret of an API key`];
    return mode === 'mainnet' && auth.type === 'none' && !isTestnets
      ? [`${path}.auth: none, and facilitators of mainnets mostly want a login; set bearer or cdp if this one does`]
      : [];
  };
  return [
    ...(mode === 'mainnet' && isTestnets
      ? [`${path}.url: x402.org settles on testnets only; name a facilitator of this mainnet`]
      : []),
    ...login(),
    ...(isInClear(url)
      ? [`${path}.url: plain http, so proofs and verdicts can be read and changed on the way; use https`]
      : []),
  ];
}

/** Over a network and not encrypted. */
function isInClear(url: string): boolean {
  return url.toLowerCase().startsWith('http:') && !isLoopbackUrl(url);
}

/** Warns where nothing that is safe to ask shows whether the backend answers. */
function probeWarnings({ backend, resources }: GatewayConfig): readonly string[] {
  const settlesAfter = resources.some(({ pricing }) => pricing.type === 'fixed' && pricing.settle === 'after');
  if (!settlesAfter || backend.probePath !== undefined) return [];
  return [
    'backend.probe: missing, and resources settle after their calls, whose silences show nothing of the backend; while it ' +
      'hangs, buyers of the others pay before their sales stop: set { path } of a GET that costs nothing',
  ];
}

/** Warns of payment data that is stored unencrypted. A store in memory leaves no file. */
function sealingWarnings({ storage: { engine, sealing }, x402 }: GatewayConfig): readonly string[] {
  const forgets = engine.kind === 'sqlite' && engine.path === ':memory:';
  if (sealing !== undefined || x402 === undefined || forgets) return [];
  return [
    `${SEALING_KEYS}: missing, so inputs, answers and signatures of payments lie readable in the store; ${MAKE_A_KEY}`,
  ];
}

/** Warns of mandates that no resource asks for, and of keys that no mandate may be signed with. */
function mandateWarnings({ authorization: { ap2 }, resources }: GatewayConfig): readonly string[] {
  if (ap2 === undefined) return [];
  const { algorithms } = ap2.profile;
  const idle = ap2.issuers.filter(
    ({ source }) => source.kind === 'static' && ![...source.keys.values()].some(({ alg }) => algorithms.has(alg)),
  );
  return [
    ...(resources.some(({ authorization }) => authorization.includes('ap2'))
      ? []
      : [
          'authorization.ap2: enabled, but no resource has authorization: { required: [ap2] }; no caller is asked for one',
        ]),
    ...idle.map(
      ({ id }) => `authorization.ap2.issuers: no key of ${id} is for an algorithm under authorization.ap2.algorithms`,
    ),
  ];
}

/** Warns of short tokens, payment data in clear, and bounds that others cut short. */
function checkoutWarnings({ merchant, limits, protocols: { acp } }: GatewayConfig): readonly string[] {
  if (!acp.enabled) return [];
  const short = acp.clients.some(({ tokens }) => tokens.some(({ length }) => length < STRONG_TOKEN_LENGTH));
  return [
    ...(isInClear(merchant.publicBaseUrl)
      ? ['protocols.acp: merchant.publicBaseUrl is not https; tokens and payment data would travel in clear']
      : []),
    ...(acp.maxInFlight > limits.maxInFlight
      ? [
          'protocols.acp.limits.maxInFlight: more than limits.maxInFlight admits of all calls together; it bounds nothing, lower it',
        ]
      : []),
    ...(short
      ? [`protocols.acp.auth: a token is shorter than ${STRONG_TOKEN_LENGTH} characters; use a long random one`]
      : []),
  ];
}
