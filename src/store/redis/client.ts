/** Makes Redis clients that never repeat a command: a lost answer is the caller's to deal with. */

import { hostname } from 'node:os';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { RedisSettings } from '../port/settings.ts';
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
  // It needs rights of its own, under names that older servers do not know.
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

/** What a connection is for. */
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
 * Gives a client the login of other settings for its next connections. Those that are open stay: a
 * server keeps whom it has let in, so that a changed password drops no command.
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
