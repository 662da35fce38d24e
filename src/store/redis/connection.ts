import { hostname } from 'node:os';
import { Redis, type RedisOptions } from 'ioredis';
import { redacted } from './failure.ts';
import { loadScripts } from './script.ts';

/** What a store may tell the log. A pino logger is one. */
export interface StoreLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** After this long without an answer a command fails with an unknown outcome, milliseconds. */
const COMMAND_TIMEOUT_MS = 500;
/** A reply that is due this long means that the peer is gone, milliseconds. */
const SOCKET_TIMEOUT_MS = 2_000;
const CONNECT_TIMEOUT_MS = 2_000;
const RECONNECT_FIRST_MS = 50;
const RECONNECT_LONGEST_MS = 1_000;
const RECONNECT_JITTER_MS = 100;
/** How long opening waits for a connection before it leaves that to the background, milliseconds. */
const FIRST_CONNECTION_MS = 1_000;

const SETTINGS = {
  // Reject at once and never send again: a command whose answer was lost may have run, and only the caller knows its token.
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  commandTimeout: COMMAND_TIMEOUT_MS,
  socketTimeout: SOCKET_TIMEOUT_MS,
  connectTimeout: CONNECT_TIMEOUT_MS,
  enableReadyCheck: true,
  lazyConnect: true,
  retryStrategy: (attempt: number) =>
    Math.min(RECONNECT_FIRST_MS * 2 ** Math.min(attempt, 10), RECONNECT_LONGEST_MS) +
    Math.floor(Math.random() * RECONNECT_JITTER_MS),
  // After a failover the old primary still answers, but it refuses writes.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
} satisfies RedisOptions;

/**
 * Connects in the background: resolves when the connection is ready, when the first attempt failed, or after 1 s, so that a
 * gateway starts (and says that it is not ready) while its Redis is still down.
 * `url` is redis://, rediss:// or unix:///path/of.sock.
 */
export async function connect(url: string, log: StoreLog | undefined): Promise<Redis> {
  const options = { ...SETTINGS, connectionName: `acg-cmd-${hostname().replaceAll(/[^A-Za-z0-9._-]/g, '-')}` };
  const socket = socketPath(url);
  const redis = socket === undefined ? new Redis(url, options) : new Redis({ ...options, path: socket });
  report(redis, log);
  redis.on('ready', () => loadScripts(redis));
  const first = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, FIRST_CONNECTION_MS).unref();
    redis.once('ready', () => {
      clearTimeout(timer);
      resolve();
    });
  });
  const failed = new Promise<void>((resolve) => redis.connect().catch(() => resolve()));
  await Promise.race([first, failed]);
  return redis;
}

function socketPath(url: string): string | undefined {
  return url.startsWith('unix://') ? decodeURIComponent(url.slice('unix://'.length)) : undefined;
}

/** One line when the connection is lost and one when it is back. The cause is only in the error event, not in rejected commands. */
function report(redis: Redis, log: StoreLog | undefined): void {
  let reported = false;
  redis.on('error', (error: unknown) => {
    if (!reported) log?.warn({ err: redacted(error) }, 'redis is not reachable');
    reported = true;
  });
  redis.on('ready', () => {
    if (reported) log?.info({}, 'redis is reachable');
    reported = false;
  });
}

/** Lets running commands finish, then closes. */
export async function disconnect(redis: Redis): Promise<void> {
  if (redis.status === 'ready') await redis.quit().catch(() => undefined);
  redis.disconnect();
}
