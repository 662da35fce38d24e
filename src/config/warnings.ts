/** What an operator should know about an accepted configuration, for the log and `acg validate`. */

import { publishedPatternWarnings } from '../resources/check.ts';
import type { GatewayConfig } from './document/config.ts';
import { isLoopbackUrl } from './document/endpoints.ts';
import { STRONG_TOKEN_LENGTH } from './document/secret-uses.ts';
import { MAKE_A_KEY, OLD_SEALING_KEYS, SEALING_KEYS } from './sections/sealing.ts';

/** Longest tool name that common model interfaces take, characters. */
const TOOL_NAME_LENGTH = 64;
/** Fillings of the two operator tokens that are probably a mistake. */
const ROTATION_WARNINGS = {
  none: [],
  both: [],
  'next alone': [
    'server.adminTokenNext: is the only operator token and works as such, because server.adminToken is missing or empty; put it there',
  ],
  'same twice': [
    'server.adminTokenNext: the same token as server.adminToken, so nothing is rotated; set a new one or remove it',
  ],
} as const;

/** Each names its setting and never holds a configured value. */
export function configWarnings(config: GatewayConfig): readonly string[] {
  const { server, protocols, resources } = config;
  const weak = server.adminTokens.some((token) => token.length < STRONG_TOKEN_LENGTH);
  const tools = resources.filter(({ exposedVia }) => exposedVia.includes('mcp')).map(({ id }) => id);
  const longNames = tools.filter((id) => id.length > TOOL_NAME_LENGTH);
  const noSkill = protocols.a2a.enabled && !resources.some(({ exposedVia }) => exposedVia.includes('a2a'));
  return [
    ...(weak ? [`server.adminToken: shorter than ${STRONG_TOKEN_LENGTH} characters; use a long random token`] : []),
    ...ROTATION_WARNINGS[server.rotation],
    ...longNames.map(
      (id) =>
        `resources.${id}: longer than the ${TOOL_NAME_LENGTH} characters many models can call; rename it or take mcp out of expose`,
    ),
    ...(protocols.mcp.enabled && tools.length === 0
      ? ['protocols.mcp: enabled, but no resource has mcp under expose; the list of tools is empty']
      : []),
    ...resources.flatMap((resource) =>
      publishedPatternWarnings(resource).map(({ path, message }) => `resources.${resource.id}.${path}: ${message}`),
    ),
    ...mandateWarnings(config),
    ...checkoutWarnings(config),
    ...sealingWarnings(config),
    ...(noSkill ? ['protocols.a2a: enabled, but no resource has a2a under expose; the agent card has no skill'] : []),
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
  const inClear = merchant.publicBaseUrl.startsWith('http:') && !isLoopbackUrl(merchant.publicBaseUrl);
  return [
    ...(inClear
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
    ...(acp.oldKeys
      ? [
          `${OLD_SEALING_KEYS}: moved to ${SEALING_KEYS}, where they seal what is stored of payments as well; deprecated, and read until the next major release`,
        ]
      : []),
  ];
}
