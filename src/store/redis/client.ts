/**
 * Connects to Redis with clients that never repeat a command: a lost answer is the caller's to deal
 * with. Runs scripts, and turns failures into StoreErrors that are safe to log.
 */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { inTime } from '../../time/time.ts';
import type { RedisSettings } from '../port/settings.ts';
import { StoreError } from '../port/store-error.ts';
import { readRedisUrl } from './url.ts';

/** One server or a cluster: both take the same commands. */
export type RedisClient = Redis | Cluster;

/** A sentinel that does not answer within this time is skipped, milliseconds. */
const SENTINEL_TIMEOUT_MS = 500;
/** A peer that sends no reply for this long is gone, milliseconds. */
const SOCKET_TIMEOUT_MS = 2_000;
const CONNECT_TIMEOUT_MS = 2_000;
const RECONNECT_FIRST_MS = 50;
const RECONNECT_LONGEST_MS = 1_000;
const RECONNECT_JITTER_MS = 100;
/** Pause when no sentinel names a primary, milliseconds; a failover takes seconds. */
const SENTINEL_PAUSE_MS = 250;
/** How often a command may be redirected. A node that redirects has not executed it. */
const MAX_REDIRECTIONS = 3;
const TRY_AGAIN_MS = 50;

const COMMANDS = {
  // Reject and never send again: a command whose answer was lost may have run, and only the caller
  // knows its step token.
  maxRetriesPerRequest: 0,
  connectTimeout: CONNECT_TIMEOUT_MS,
  enableReadyCheck: true,
  // CLIENT SETINFO needs rights whose names older servers do not know.
  disableClientInfo: true,
} satisfies RedisOptions;

const SERVER = {
  ...COMMANDS,
  enableOfflineQueue: false,
  lazyConnect: true,
  retryStrategy: reconnectPause,
  // After a failover the old primary still answers, but it refuses writes.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
} satisfies RedisOptions;

function reconnectPause(attempt: number): number {
  const pause = Math.min(RECONNECT_FIRST_MS * 2 ** Math.min(attempt, 10), RECONNECT_LONGEST_MS);
  return pause + Math.floor(Math.random() * RECONNECT_JITTER_MS);
}

/** The purpose of a connection. */
export interface Use {
  /** Part of the name under which the server lists it. */
  readonly name: string;
  /** How long its commands may wait on the server, milliseconds. */
  readonly waitsMs?: number;
}

/**
 * A client that is not connected yet.
 * @throws Error for an invalid URL, which the configuration has refused before
 */
export function createClient(settings: RedisSettings, { name, waitsMs = 0 }: Use): RedisClient {
  const connectionName = `acg-${name}-${hostname().replaceAll(/[^A-Za-z0-9._-]/g, '-')}`;
  // `answered` limits single replies: the client's own timer gives up without a look at the socket.
  const named = { connectionName, socketTimeout: waitsMs + SOCKET_TIMEOUT_MS, ...credentials(settings) };
  if ('cluster' in settings) return clusterClient(settings.cluster.nodes, { ...named, ...encryption(settings) });
  if ('sentinel' in settings) return sentinelClient(settings, { ...named, ...encryption(settings) });
  const reading = readRedisUrl(settings.url);
  if (!reading.ok) throw new Error(`the URL of Redis ${reading.message}`);
  const { at, tls, db, username, password } = reading.url;
  const user = { ...(username === undefined ? {} : { username }), ...(password === undefined ? {} : { password }) };
  const database = db === undefined ? {} : { db };
  return new Redis({ ...SERVER, ...named, ...user, ...database, ...encryption(settings, tls), ...at });
}

/** Options that differ between connections. */
type Own = Pick<RedisOptions, 'connectionName' | 'socketTimeout' | 'username' | 'password' | 'tls'>;

function sentinelClient(settings: Extract<RedisSettings, { sentinel: unknown }>, own: Own): Redis {
  const { name, nodes, username, password } = settings.sentinel;
  return new Redis({
    ...SERVER,
    ...own,
    name,
    role: 'master',
    sentinels: nodes.map(({ host, port }) => ({ host, port })),
    sentinelRetryStrategy: () => SENTINEL_PAUSE_MS,
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    ...(username === undefined ? {} : { sentinelUsername: username }),
    ...(password === undefined ? {} : { sentinelPassword: password }),
    ...(own.tls === undefined ? {} : { sentinelTLS: own.tls, enableTLSForSentinelMode: true }),
  });
}

function clusterClient(nodes: readonly { readonly host: string; readonly port: number }[], own: Own): Cluster {
  return new Cluster([...nodes], {
    redisOptions: { ...COMMANDS, ...own },
    enableOfflineQueue: false,
    enableReadyCheck: true,
    lazyConnect: true,
    scaleReads: 'master',
    slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
    clusterRetryStrategy: reconnectPause,
    maxRedirections: MAX_REDIRECTIONS,
    retryDelayOnTryAgain: TRY_AGAIN_MS,
    // A connection that broke may have carried the command: 0 refuses to send it again.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    // Names are not resolved here, so that certificates can be checked against them.
    dnsLookup: (address, found) => found(null, address),
  });
}

/**
 * Gives a client the login of `settings` for its next connections. Open connections stay logged in,
 * so that a changed password drops no command.
 */
export function renewLogin(redis: RedisClient, settings: RedisSettings): void {
  const login = loginOf(settings);
  if (redis instanceof Redis) {
    const sentinel: Login = 'sentinel' in settings ? settings.sentinel : {};
    Object.assign(redis.options, login, {
      sentinelUsername: sentinel.username ?? null,
      sentinelPassword: sentinel.password ?? null,
    });
    return;
  }
  // A cluster copies its options for the connections to come, and each connection has its own.
  const { connectionPool } = redis as unknown as { readonly connectionPool: { readonly redisOptions: object } };
  for (const options of [connectionPool.redisOptions, ...redis.nodes('all').map((node) => node.options)])
    Object.assign(options, login);
}

type Login = Pick<RedisSettings, 'username' | 'password'>;

/** The login of settings, which may stand in the URL. Null takes an earlier one away. */
function loginOf(settings: RedisSettings): { readonly username: string | null; readonly password: string | null } {
  const reading = 'url' in settings ? readRedisUrl(settings.url) : undefined;
  const inUrl: Login = reading?.ok === true ? reading.url : {};
  return {
    username: settings.username ?? inUrl.username ?? null,
    password: settings.password ?? inUrl.password ?? null,
  };
}

function credentials({ username, password }: RedisSettings): Own {
  return { ...(username === undefined ? {} : { username }), ...(password === undefined ? {} : { password }) };
}

function encryption({ tls }: RedisSettings, wanted = false): Own {
  return tls === undefined && !wanted ? {} : { tls: { ...tls } };
}

/** The part of a pino logger that a store writes to. */
export interface StoreLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Longest wait of `connect` for the first connection, milliseconds. */
const FIRST_CONNECTION_MS = 1_000;

/**
 * Resolves when the connection is ready, when the first attempt failed, or after 1 s, so that a
 * gateway starts (and reports that it is not ready) while its Redis is down.
 */
export async function connect(settings: RedisSettings, use: Use, log: StoreLog | undefined): Promise<RedisClient> {
  const redis = createClient(settings, use);
  report(redis, log, encrypted(settings));
  redis.on('ready', () => void loadScripts(redis));
  const first = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, FIRST_CONNECTION_MS).unref();
    redis.once('ready', () => {
      clearTimeout(timer);
      // A cluster is ready before its nodes are connected: a command would find none.
      loadScripts(redis).then(resolve, resolve);
    });
  });
  const failed = new Promise<void>((resolve) => redis.connect().catch(() => resolve()));
  await Promise.race([first, failed]);
  return redis;
}

/** Logs one line when the connection is lost and one when it is back. */
function report(redis: RedisClient, log: StoreLog | undefined, tls: boolean): void {
  let reported = false;
  let served = false;
  const lost = (thrown: unknown) => {
    if (reported) return;
    reported = true;
    const err = redacted(thrown);
    const { sign, hint } = TLS_HINTS[tls ? 'tls' : 'plain'];
    log?.warn({ err, ...(!served && sign.test(err.message) ? { hint } : {}) }, 'redis is not reachable');
  };
  // A cluster's own error only states that no node answered; the last node's error has the cause.
  redis.on('error', (thrown: unknown) => lost((thrown as { lastNodeError?: unknown })?.lastNodeError ?? thrown));
  // A server may also close the connection, without an error event.
  redis.on('reconnecting', () => lost(new Error('the connection was closed')));
  redis.on('ready', () => {
    served = true;
    if (reported) log?.info({}, 'redis is reachable');
    reported = false;
  });
}

/** Signs in the first error of a server that expects TLS, or does not speak it. */
const TLS_HINTS = {
  plain: { sign: /ECONNRESET|EPIPE|closed/, hint: 'the server may expect TLS: use rediss:// or storage.redis.tls' },
  tls: { sign: /ECONNRESET|ETIMEDOUT|wrong version/, hint: 'the server may not speak TLS on this port' },
} as const;

function encrypted(settings: RedisSettings): boolean {
  return settings.tls !== undefined || ('url' in settings && settings.url.startsWith('rediss:'));
}

/** Lets running commands finish, then closes. */
export async function disconnect(redis: RedisClient): Promise<void> {
  if (redis.status === 'ready') await redis.quit().catch(() => undefined);
  redis.disconnect();
}

/** A command without an answer after this time has failed, its outcome unknown, milliseconds. */
const DUE_MS = 500;

/** `user:password@` of any URL inside a message. */
const CREDENTIALS = /\/\/[^/@\s]*@/g;

/**
 * Name, message and code of an error. The client's errors carry the whole command too, which may
 * hold a password of AUTH or a buyer's proof.
 */
export function redacted(thrown: unknown): Error {
  const source = thrown instanceof Error ? thrown : new Error(String(thrown));
  const error = new Error(source.message.replaceAll(CREDENTIALS, '//'));
  error.name = source.name;
  const { code } = source as { code?: unknown };
  return typeof code === 'string' ? Object.assign(error, { code }) : error;
}

/** The client's error for a command that it never wrote, because there was no connection. */
const NEVER_LEFT = /^(?:Stream isn't writeable|Cluster isn't ready)/;

/**
 * The server's reply. `waitsMs`: how long the command may wait on the server, milliseconds.
 * @throws StoreError for every error of the client, and for a late reply
 */
export async function answered<T>(reply: Promise<T>, waitsMs = 0): Promise<T> {
  try {
    return await inTime(reply, waitsMs + DUE_MS, timedOut);
  } catch (thrown) {
    const cause = redacted(thrown);
    throw new StoreError(cause, !NEVER_LEFT.test(cause.message));
  }
}

function timedOut(): never {
  throw new Error('Command timed out');
}

/** A script, and the digest by which a server knows it. */
interface Script {
  readonly source: string;
  readonly sha: string;
}

function script(source: string): Script {
  return { source, sha: createHash('sha1').update(source).digest('hex') };
}

export const COMMIT = script(readFileSync(new URL('./scripts/commit.lua', import.meta.url), 'utf8'));
/** Reads documents, and with them the clock. */
export const READ = script(`local time = redis.call('TIME')
return { string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)), redis.call('MGET', unpack(KEYS)) }`);
export const WORK = script(readFileSync(new URL('./scripts/work.lua', import.meta.url), 'utf8'));

/**
 * Loads all scripts into the servers. Without it the first use of each is sent twice, and a later
 * command may overtake it: events would be in the wrong order. Never rejects: a server that does
 * not allow this gets each script with its first use.
 */
async function loadScripts(redis: RedisClient): Promise<void> {
  const servers = redis instanceof Cluster ? redis.nodes('master') : [redis];
  await Promise.allSettled(
    servers.flatMap((server) => [COMMIT, READ, WORK].map(({ source }) => server.script('LOAD', source))),
  );
}

/** Runs a script. Rejects with the client's errors. */
export async function runScript(
  redis: RedisClient,
  { source, sha }: Script,
  keys: readonly string[],
  words: readonly (string | Buffer)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(sha, keys.length, ...keys, ...words);
  } catch (thrown) {
    // A server that restarted has forgotten the script; nothing has run.
    if (!(thrown instanceof Error) || !thrown.message.startsWith('NOSCRIPT')) throw thrown;
    return redis.eval(source, keys.length, ...keys, ...words);
  }
}
