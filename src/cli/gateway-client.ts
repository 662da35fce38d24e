/** Asks a running gateway what its operators may ask, with their token. */

import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import type { Dispatcher } from 'undici';
import type { GatewayConfig } from '../config/document/config.ts';
import { readHttpUrl } from '../config/document/endpoints.ts';
import { configPath } from '../config/document/parse.ts';
import { loadConfig } from '../config/load.ts';
import { isObject, type Json, type JsonObject } from '../json/json.ts';
import { ConfigError } from '../problems/problem.ts';
import { bodyText, httpGet } from './http-get.ts';
import { visible } from './output.ts';
import { CONFIG_OPTION, UnavailableError, UsageError } from './program.ts';

/** Largest answer, bytes: ten pages of 500 events, each with 2 KiB of data. */
const MAX_ANSWER_BYTES = 16_777_216;
/** Longest silence of the stream, milliseconds: three heartbeats, one each 15 s, are missing. */
const STREAM_SILENT_MS = 45_000;
/** The form of a token: visible characters, at most as many as the configuration takes. */
const TOKEN = /^[!-~]{1,512}$/;
/** Variables that may hold the token, the first one wins. */
const TOKEN_VARIABLES = ['ACG_ADMIN_TOKEN', 'ADMIN_TOKEN'] as const;

/** The values of the options of `addAccessOptions`. */
export interface AccessArgs {
  readonly config?: string;
  readonly url?: string;
  readonly tokenFile?: string;
}

/** A gateway that was found; it may not run. */
export interface GatewayClient {
  /** @throws UnavailableError; Error for a wrong token; UsageError for a refused parameter */
  list(path: string, query: Readonly<Record<string, string>>): Promise<JsonObject>;
  /** The event stream behind an event. Throws the same as `list`. */
  stream(lastEventId: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
}

interface Access {
  /** Without trailing slash. */
  readonly url: string;
  readonly token: string;
  /** The source of the token, for messages. */
  readonly source: string;
  /** The host that the gateway serves, where it does not serve every one. */
  readonly host?: string;
}

/** Adds `--config`, `--url` and `--token-file`; others would see a token in an option. */
export function addAccessOptions(command: Command): Command {
  return command
    .option(...CONFIG_OPTION)
    .addOption(new Option('--url <url>', 'another gateway; its token in ACG_ADMIN_TOKEN or a file').conflicts('config'))
    .option('--token-file <file>', 'a file with the operator token');
}

/** Opens no connection yet. @throws UsageError, ConfigError, or the error of a file */
export function openGatewayClient(args: AccessArgs, env: NodeJS.ProcessEnv = process.env): GatewayClient {
  const access = args.url === undefined ? configuredAccess(args, env) : namedAccess(args.url, args, env);
  const { url, token, host } = access;
  const headers = { authorization: `Bearer ${token}`, ...(host === undefined ? {} : { host }) };
  return {
    async list(path, query) {
      const target = `${url}${path}?${new URLSearchParams(query)}`;
      const response = await httpGet(target, { headers });
      if (response.statusCode !== 200) throw await refusal(access, response);
      const answer = jsonOf(await bodyText(target, response, MAX_ANSWER_BYTES));
      if (!isObject(answer)) throw new UnavailableError(`${url} answers as no gateway does`);
      return answer;
    },
    async stream(lastEventId, signal) {
      const resumed = { ...headers, accept: 'text/event-stream', 'last-event-id': lastEventId };
      const response = await httpGet(`${url}/api/events/stream`, {
        headers: resumed,
        signal,
        silentMs: STREAM_SILENT_MS,
      });
      if (response.statusCode !== 200) throw await refusal(access, response);
      return response.body;
    },
  };
}

/** The address at which a gateway of this configuration listens, as this machine reaches it. */
export function localAddress({ server }: Pick<GatewayConfig, 'server'>): {
  readonly url: string;
  readonly host?: string;
} {
  const [served] = server.allowedHosts ?? [];
  return { url: localUrl(server), ...(served === undefined ? {} : { host: served }) };
}

/** The URL of a listener on this machine. */
export function localUrl({ host, port }: { readonly host: string; readonly port: number }): string {
  const everywhere = host === '0.0.0.0' || host === '::';
  return `http://${everywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}`;
}

function configuredAccess({ config: path, tokenFile }: AccessArgs, env: NodeJS.ProcessEnv): Access {
  const config = loadConfig({ path, env });
  const file = configPath(path, env);
  if (config.server.port === 0) throw new UsageError(`server.port of ${file} is 0, any free one: give --url`);
  const address = localAddress(config);
  if (tokenFile !== undefined) return { ...address, ...tokenIn(tokenFile) };
  const [token] = config.server.adminTokens;
  if (token !== undefined) return { ...address, token, source: `server.adminToken in ${file}` };
  const message = 'is missing: without it a gateway has no routes for operators';
  throw new ConfigError([{ path: 'server.adminToken', message }]);
}

/** The token of the configuration goes to its own gateway alone. */
function namedAccess(text: string, { tokenFile }: AccessArgs, env: NodeJS.ProcessEnv): Access {
  const reading = readHttpUrl(text, true);
  if (!reading.ok) throw new UsageError(`--url ${reading.message}`);
  const url = reading.url.href.replace(/\/+$/, '');
  if (tokenFile !== undefined) return { url, ...tokenIn(tokenFile) };
  const variable = TOKEN_VARIABLES.find((name) => (env[name] ?? '') !== '');
  if (variable === undefined)
    throw new UsageError('--url needs the operator token: set ACG_ADMIN_TOKEN, or give --token-file');
  return { url, token: checked(env[variable] ?? '', variable), source: variable };
}

/** @throws the error of the file */
function tokenIn(file: string): Pick<Access, 'token' | 'source'> {
  return { token: checked(readFileSync(file, 'utf8').trim(), file), source: file };
}

function checked(token: string, source: string): string {
  if (TOKEN.test(token)) return token;
  throw new UsageError(`${source} holds no operator token: one line of at most 512 visible ASCII characters`);
}

/** Why a gateway, or something else at its address, answered with another status than 200. */
async function refusal({ url, source }: Access, response: Dispatcher.ResponseData): Promise<Error> {
  const { statusCode: status } = response;
  const envelope = jsonOf(await bodyText(url, response, MAX_ANSWER_BYTES));
  const { code, message } = isObject(envelope) && typeof envelope['code'] === 'string' ? envelope : {};
  const said = visible(typeof message === 'string' ? message : '');
  if (code === undefined) return new UnavailableError(`${url} answers ${status} and is no gateway`);
  if (status === 401) return new Error(`${url} refuses the operator token of ${source}`);
  if (status === 404) return new Error(`${url} has no routes for operators: it runs without server.adminToken`);
  if (status === 400) return new UsageError(said);
  if (status < 500) return new Error(`${url} answers ${status}: ${said}`);
  return new UnavailableError(`${url} answers ${status}: ${said}`);
}

function jsonOf(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** Most entries that a gateway gives at once. */
const PAGE = 500;

/** A list, and the part of it that is read. */
interface Reading<Entry> {
  readonly path: '/api/receipts' | '/api/events';
  readonly query: Readonly<Record<string, string>>;
  readonly limit: number;
  /** False for the first entry that is too old. */
  readonly isWanted?: (entry: Entry) => boolean;
}

/** The entries that were read, and the cursor of older ones that are wanted too. */
interface ReadEntries<Entry> {
  readonly entries: readonly Entry[];
  readonly nextCursor?: string;
}

/** @throws what the client throws */
export async function readList<Entry extends { readonly id: string }>(
  client: GatewayClient,
  { path, query, limit, isWanted = () => true }: Reading<Entry>,
): Promise<ReadEntries<Entry>> {
  const entries: Entry[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.list(path, {
      ...query,
      limit: String(Math.min(PAGE, limit - entries.length)),
      ...(cursor === undefined ? {} : { cursor }),
    });
    const listed = entriesOf<Entry>(page[path.slice('/api/'.length)], path);
    const old = listed.findIndex((entry) => !isWanted(entry));
    entries.push(...(old === -1 ? listed : listed.slice(0, old)));
    const next = page['nextCursor'];
    if (next === cursor && next !== undefined) throw new UnavailableError(`${path} leads back to where it was`);
    cursor = old === -1 && typeof next === 'string' ? next : undefined;
  } while (cursor !== undefined && entries.length < limit);
  return { entries, ...(cursor === undefined ? {} : { nextCursor: cursor }) };
}

/** Of each entry only its id is certain: a gateway of another release may leave members out. */
function entriesOf<Entry>(listed: unknown, path: string): readonly Entry[] {
  const isEntry = (entry: unknown): entry is Entry =>
    typeof entry === 'object' && entry !== null && 'id' in entry && typeof entry.id === 'string';
  if (Array.isArray(listed) && listed.every(isEntry)) return listed;
  throw new UnavailableError(`${path} is not answered as a gateway does`);
}
