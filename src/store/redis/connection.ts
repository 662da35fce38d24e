import type { RedisSettings } from '../port/settings.ts';
import { createClient, type RedisClient, type Use } from './client.ts';
import { redacted } from './failure.ts';
import { loadScripts } from './script.ts';

/** What a store may tell the log. A pino logger is one. */
export interface StoreLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/**
 * How long opening waits for a connection before it leaves that to the background, milliseconds.
 */
const FIRST_CONNECTION_MS = 1_000;

/**
 * Connects in the background: resolves when the connection is ready, when the first attempt failed,
 * or after 1 s, so that a gateway starts (and says that it is not ready) while its Redis is still
 * down.
 */
export async function connect(settings: RedisSettings, use: Use, log: StoreLog | undefined): Promise<RedisClient> {
  const redis = createClient(settings, use);
  report(redis, log, encrypted(settings));
  redis.on('ready', () => void loadScripts(redis));
  const first = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, FIRST_CONNECTION_MS).unref();
    redis.once('ready', () => {
      clearTimeout(timer);
      // A cluster is ready before its nodes are connected; a command would then find none.
      loadScripts(redis).then(resolve, resolve);
    });
  });
  const failed = new Promise<void>((resolve) => redis.connect().catch(() => resolve()));
  await Promise.race([first, failed]);
  return redis;
}

/**
 * One line when the connection is lost and one when it is back. The cause is only in the error
 * event, not in rejected commands.
 */
function report(redis: RedisClient, log: StoreLog | undefined, tls: boolean): void {
  let reported = false;
  let served = false;
  const lost = (thrown: unknown) => {
    if (reported) return;
    reported = true;
    const err = redacted(thrown);
    const { sign, hint } = MISUNDERSTOOD[tls ? 'tls' : 'plain'];
    log?.warn({ err, ...(!served && sign.test(err.message) ? { hint } : {}) }, 'redis is not reachable');
  };
  // What a cluster throws only says that no node answered; why is with the last of them.
  redis.on('error', (thrown: unknown) => lost((thrown as { lastNodeError?: unknown })?.lastNodeError ?? thrown));
  // A server may also close the connection without a word, and then there is no error.
  redis.on('reconnecting', () => lost(new Error('the connection was closed')));
  redis.on('ready', () => {
    served = true;
    if (reported) log?.info({}, 'redis is reachable');
    reported = false;
  });
}

/**
 * What becomes of a first message that the server does not understand: it hangs up, or waits for
 * the rest of a line.
 */
const MISUNDERSTOOD = {
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
