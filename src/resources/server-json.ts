/**
 * `server.json`, with which a merchant publishes the MCP endpoint in the MCP registry. The registry
 * keeps documents that are sent to it and fetches none, so a command prints it, and no path has it.
 */

import release from '../../package.json' with { type: 'json' };
import { ConfigError, type ConfigProblem } from '../problems/problem.ts';
import type { CatalogueSettings } from './settings.ts';

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
/** Longest title and description, and longest name, characters. */
const MOST_CHARACTERS = 100;
const LONGEST_NAME = 200;
/** The registry takes no other icon. */
const ICON = /^https:\/\/.{1,247}$/i;
/** The registry refuses ranges and `latest`, and sorts by semantic versions. */
const VERSION = /^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/;
/** A domain with a top-level domain of letters: the registry asks for a proof of it. */
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*$/i;

/** The choices of a merchant; the rest follows from the configuration. */
export interface ServerJsonChoices {
  /** At most 100 characters; names of tools unless given. */
  readonly description?: string | undefined;
  /** A published version never changes, so each change needs a new one. Default: the gateway's. */
  readonly version?: string | undefined;
}

/**
 * The document as JSON text with a line end. Its name is the domain of `publicBaseUrl` in reverse,
 * which the merchant proves when it is published, and the id of the merchant.
 * @throws ConfigError when the registry does not take the endpoint, or a choice
 */
export function serverJson(
  { merchant, protocols, resources }: Pick<CatalogueSettings, 'merchant' | 'protocols' | 'resources'>,
  { description, version = release.version }: ServerJsonChoices = {},
): string {
  const { id, name, publicBaseUrl, iconUrl = '' } = merchant;
  const { protocol, hostname } = new URL(publicBaseUrl);
  const tools = resources.filter(({ exposedVia }) => exposedVia.includes('mcp'));
  const problems: ConfigProblem[] = [];
  const refuse = (path: string, message: string): number => problems.push({ path, message });
  if (protocol !== 'https:' || !DOMAIN.test(hostname) || hostname.endsWith('.localhost'))
    refuse('merchant.publicBaseUrl', 'must be https with a public domain name: the registry takes no other address');
  if (!protocols.mcp.enabled) refuse('protocols.mcp.enabled', 'must be true: the registry lists MCP endpoints');
  else if (tools.length === 0)
    refuse('resources', 'must have one with mcp in expose: the endpoint would have no tools');
  const reversed = `${hostname.split('.').reverse().join('.')}/${id}`;
  if (reversed.length > LONGEST_NAME)
    refuse('merchant.id', `makes the name ${reversed.length} characters long, and ${LONGEST_NAME} are allowed`);
  if (description !== undefined && (description === '' || charactersOf(description) > MOST_CHARACTERS))
    refuse('description', `must have 1 to ${MOST_CHARACTERS} characters`);
  if (!VERSION.test(version)) refuse('version', 'must be a semantic version such as 1.2.0');
  if (problems.length > 0) throw new ConfigError(problems);
  const document = {
    $schema: SCHEMA,
    name: reversed,
    title: [...name].slice(0, MOST_CHARACTERS).join(''),
    description: description ?? describedByTools(tools),
    version,
    ...(ICON.test(iconUrl) ? { icons: [{ src: iconUrl }] } : {}),
    remotes: [{ type: 'streamable-http', url: publicBaseUrl + protocols.mcp.mountPath }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** As many names of tools as there is room for, and the way to pay. */
function describedByTools(tools: CatalogueSettings['resources']): string {
  const paid = tools.some(({ pricing }) => pricing.type !== 'free');
  const end = paid ? '; paid per call with x402, no account' : '; free';
  const names = tools.map(({ name }) => name);
  for (let shown = names.length; shown > 0; shown -= 1) {
    const rest = names.length - shown;
    const text = `${names.slice(0, shown).join(', ')}${rest === 0 ? '' : ` and ${rest} more`}${end}`;
    if (charactersOf(text) <= MOST_CHARACTERS) return text;
  }
  return `${names.length} tools${end}`;
}

function charactersOf(text: string): number {
  return [...text].length;
}
