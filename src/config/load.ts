import { ProblemList } from '../problems/problem.ts';
import { publishedPatternWarnings } from '../resources/check.ts';
import { deriveConfig } from './derive.ts';
import type { GatewayConfig } from './document/config.ts';
import type { ConfigDocument } from './document/document.ts';
import { configPath, type Environment, parseConfigText, readConfigFile } from './document/read.ts';
import { STRONG_TOKEN_LENGTH } from './document/secret-uses.ts';
import { environmentOverrides, expand } from './expand.ts';
import { checkoutWarnings } from './sections/acp-warnings.ts';
import { MAKE_A_KEY, SEALING_KEYS } from './sections/sealing.ts';
import { validateDocument } from './validate.ts';

/**
 * Where a configuration comes from. `path` is the `--config` argument; without it
 * AGENT_COMMERCE_CONFIG, else `config.yaml`.
 */
interface ConfigSource {
  readonly path?: string | undefined;
  readonly env: Environment;
}

/**
 * Reads, expands, validates and derives the configuration. Nothing is opened but the file itself
 * and the mounted secrets it names.
 * @throws ConfigError with every problem, before anything starts
 */
export function loadConfig({ path, env }: ConfigSource): GatewayConfig {
  return parseConfig(readConfigFile(configPath(path, env)), env);
}

/** The same for a text that was read already.  @throws ConfigError */
export function parseConfig(text: string, env: Environment): GatewayConfig {
  const raw = parseConfigText(text);
  const problems = new ProblemList();
  const overrides = environmentOverrides(raw, env, problems);
  const expansion = expand(raw, env, overrides.paths, problems);
  const document = overrides.apply(expansion.value);
  // A refused document is still looked through, section by section: `deriveConfig` skips what the
  // schema refused.
  validateDocument(document, problems);
  if (!problems.sound('')) problems.throwIfAny();
  return deriveConfig(document as ConfigDocument, expansion.fromFile, problems);
}

/** Longest tool name that common model interfaces take, characters. */
const TOOL_NAME_LENGTH = 64;

/** What a rotation of the operator token may have been meant to be, and is not. */
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

/**
 * What an operator should know although it is allowed; for the log and for `doctor`. Never holds a
 * configured value.
 */
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

/**
 * What buyers send and are given, and what they signed, in clear. What is forgotten with the
 * process is no file.
 */
function sealingWarnings({ storage: { engine, sealing }, x402 }: GatewayConfig): readonly string[] {
  const forgets = engine.kind === 'sqlite' && engine.path === ':memory:';
  if (sealing !== undefined || x402 === undefined || forgets) return [];
  return [
    `${SEALING_KEYS}: missing, so inputs, answers and signatures of payments lie readable in the store; ${MAKE_A_KEY}`,
  ];
}

/** Mandates that nobody is asked for, and keys that no mandate may be signed with. */
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
          'authorization.ap2: enabled, but no resource has authorization: { required: [ap2] }; nobody is asked for one',
        ]),
    ...idle.map(
      ({ id }) => `authorization.ap2.issuers: no key of ${id} is for an algorithm under authorization.ap2.algorithms`,
    ),
  ];
}
