/** Connects to Redis in the background, and logs when the server is lost and when it is back. */

import type { RedisSettings } from '../port/settings.ts';
import { createClient, type RedisClient, type Use } from './client.ts';
import { redacted } from './failure.ts';
import { loadScripts } from './script.ts';

/** The part of a pino logger that a store writes to. */
export interface StoreLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Longest wait for the first connection before the background goes on with it, milliseconds. */
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

/** One line when the connection is lost and one when it is back; only the event has the cause. */
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

/** How a server that expects TLS, or does not speak it, fails the first message. */
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
