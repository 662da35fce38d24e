/** The checks of Redis: reachable, writable, the rights of its user, and what it keeps. */

import { randomUUID } from 'node:crypto';
import type { DeploymentMode } from '../../payments/x402/wire/settings.ts';
import type { RedisSettings } from '../../store/port/settings.ts';
import { StoreError } from '../../store/port/store-error.ts';
import { answered, createClient, type RedisClient, redacted } from '../../store/redis/client.ts';
import { REPLICAS_TO_WAIT } from '../../store/redis/commits.ts';
import { keyPrefix } from '../../store/redis/open.ts';
import { costOf, readFsync, readSetup } from '../../store/redis/setup.ts';
import { readRedisUrl } from '../../store/redis/url.ts';
import { type Check, type Finding, failed, type Part, passed, skipped, warned } from './check.ts';

/** How long a written key stays where it cannot be deleted, milliseconds. */
const KEEP_MS = 10_000;
/** How long a replica may take for a write, milliseconds. */
const WAIT_MS = 1_000;

/** `mode`: undefined where nothing is paid. Opens no connection before the first check runs. */
export function checkRedis(settings: RedisSettings, merchantId: string, mode: DeploymentMode | undefined): Part {
  const prefix = keyPrefix(merchantId);
  const trialKey = (): string => `${prefix}trial:${randomUUID()}`;
  const { replicas = 0 } = settings;
  let redis: RedisClient | undefined;
  const client = (): RedisClient => {
    if (redis === undefined) throw new Error('there is no connection');
    return redis;
  };
  const setup = async () => readSetup(client(), prefix, replicas);
  const checks: Check[] = [
    {
      name: 'redis',
      async run() {
        const opened = await open(settings);
        if (opened instanceof Error) return failed(`${placeOf(settings)}: ${opened.message}`, remedyOf(opened));
        redis = opened;
        const began = performance.now();
        await answered(opened.ping());
        return passed(`${placeOf(settings)} answers in ${Math.ceil(performance.now() - began)} ms`);
      },
    },
    {
      name: 'redis rights',
      needs: ['redis'],
      async run() {
        const missing = await missingRights(client(), trialKey());
        if (missing.length === 0) return passed('the user may run every command that a gateway sends');
        return failed(
          `the user lacks ${missing.join(' ')}`,
          `ACL SETUSER ${settings.username ?? 'USER'} ${missing.join(' ')} (docs/redis.md has the whole list)`,
        );
      },
    },
    {
      name: 'redis write',
      needs: ['redis rights'],
      run: () => writeAndReadBack(client(), trialKey()),
    },
    {
      name: 'redis eviction',
      needs: ['redis'],
      async run() {
        const { eviction, memory } = await setup();
        if (eviction === undefined) return unknown('maxmemory-policy');
        if (eviction !== null) return failed(eviction, 'CONFIG SET maxmemory-policy noeviction, and in its file');
        return typeof memory === 'string'
          ? warned(memory, 'give it a larger maxmemory, or keep fewer receipts: storage.receiptsMaxLength')
          : passed('maxmemory-policy noeviction');
      },
    },
    {
      name: 'redis append-only file',
      needs: ['redis'],
      async run() {
        const { appendOnly } = await setup();
        if (appendOnly === undefined) return unknown('appendonly');
        if (appendOnly === null) return passed('appendonly yes');
        const found = mode === 'mainnet' ? failed : warned;
        return found(appendOnly, 'CONFIG SET appendonly yes, and in its file; look at its disk and log');
      },
    },
    {
      name: 'redis fsync',
      needs: ['redis append-only file'],
      async run() {
        const fsync = await readFsync(client(), prefix);
        if (fsync === 'off') return skipped('see redis append-only file');
        if (fsync === undefined) return unknown('appendfsync');
        const cost = costOf(fsync);
        if (fsync === 'secret') return skipped(`${cost}; +config|get lets it be read`);
        return cost === undefined ? passed(`appendfsync ${fsync}`) : warned(cost, 'CONFIG SET appendfsync always');
      },
    },
  ];
  if (replicas > 0)
    checks.push({
      name: 'redis replicas',
      needs: ['redis rights'],
      run: async () => replicasOf(settings, trialKey(), replicas, (await setup()).replicas),
    });
  return { checks, close: () => redis?.disconnect() };
}

/** Connects; resolves with the error, `redacted`, where that fails. */
async function open(settings: RedisSettings): Promise<RedisClient | Error> {
  const redis = createClient(settings, { name: 'doctor' });
  let last: unknown;
  // A cluster's own error only states that no node answered; the last node's error has the cause.
  redis.on('error', (thrown: unknown) => {
    last = (thrown as { lastNodeError?: unknown })?.lastNodeError ?? thrown;
  });
  try {
    await redis.connect();
    return redis;
  } catch (thrown) {
    redis.disconnect();
    return redacted(last ?? thrown);
  }
}

function remedyOf({ message }: Error): string {
  return /WRONGPASS|NOAUTH|NOPERM/.test(message)
    ? 'correct username and password under storage.redis, or the user in Redis'
    : 'start it, or correct its address under storage.redis';
}

/** The address of Redis, without the login that a URL may hold. */
function placeOf(settings: RedisSettings): string {
  if ('sentinel' in settings) return `the primary ${settings.sentinel.name} of the sentinels`;
  if ('cluster' in settings) return 'the cluster';
  const reading = readRedisUrl(settings.url);
  if (!reading.ok) return 'Redis';
  const { at } = reading.url;
  return 'path' in at ? at.path : `${at.host}:${at.port}`;
}

async function writeAndReadBack(redis: RedisClient, key: string): Promise<Finding> {
  const token = randomUUID();
  try {
    await answered(redis.set(key, token, 'PX', KEEP_MS));
    const read = await answered(redis.get(key));
    await answered(redis.del(key));
    return read === token
      ? passed('a key was written, read back and deleted')
      : failed('a written key was not read back', 'look whether a replica answers in place of the primary');
  } catch (thrown) {
    const cause = thrown instanceof StoreError ? thrown.cause : thrown;
    return failed(String(cause instanceof Error ? cause.message : cause), 'look at its memory, its disk and its log');
  }
}

async function replicasOf(
  settings: RedisSettings,
  key: string,
  wanted: number,
  weak: string | null | undefined,
): Promise<Finding> {
  const remedy = 'look at the replicas, or correct storage.redis.replicas';
  if (typeof weak === 'string') return warned(weak, remedy);
  if (wanted < REPLICAS_TO_WAIT) return weak === null ? passed(`${wanted} is online`) : unknown('replicas');
  // WAIT blocks its connection, and counts the writes of that one alone.
  const redis = await open(settings);
  if (redis instanceof Error) throw redis;
  try {
    const results = await redis.pipeline().set(key, '', 'PX', KEEP_MS).wait(1, WAIT_MS).del(key).exec();
    const [, [error, having] = []] = results ?? [];
    return error instanceof Error || having === 0
      ? failed(`no replica has a write within ${WAIT_MS} ms, and payments wait for one`, remedy)
      : passed(`a write is on ${String(having)} of ${wanted} replicas at once`);
  } finally {
    redis.disconnect();
  }
}

function unknown(setting: string): Finding {
  return skipped(`the server does not show ${setting}: look it up at who runs it`);
}

/** An end so late that PEXPIREAT with LT changes nothing, milliseconds. */
const FAR_MS = 10_000_000_000_000;
const SCRIPT = 'return 1';
/** The digest of a script that no server has; servers look for it after the check of rights. */
const UNKNOWN_SHA = '0'.repeat(40);
const WRITE = '+set';

type Words = readonly [command: string, ...words: (string | number)[]];

/** Commands without a key, by the right that they need. */
const OF_SERVER: Readonly<Record<string, Words>> = {
  '+ping': ['PING'],
  '+info': ['INFO', 'server'],
  '+time': ['TIME'],
  '+wait': ['WAIT', 0, 1],
  '+client|setname': ['CLIENT', 'SETNAME', 'acg-doctor'],
  '+hello': ['HELLO'],
  '+script|load': ['SCRIPT', 'LOAD', SCRIPT],
};

/**
 * Commands with a key, by the right that they need. The key holds a text, so that commands for
 * other types fail after the check of rights, and change nothing.
 */
const OF_KEY: Readonly<Record<string, (key: string) => Words>> = {
  [WRITE]: (key) => ['SET', key, '1', 'PX', KEEP_MS],
  '+get': (key) => ['GET', key],
  '+getrange': (key) => ['GETRANGE', key, 0, 0],
  '+mget': (key) => ['MGET', key],
  '+pexpireat': (key) => ['PEXPIREAT', key, FAR_MS, 'LT'],
  '+eval': (key) => ['EVAL', SCRIPT, 1, key],
  '+evalsha': (key) => ['EVALSHA', UNKNOWN_SHA, 1, key],
  '+zadd': (key) => ['ZADD', key, 0, 'm'],
  '+zrem': (key) => ['ZREM', key, 'm'],
  '+zcard': (key) => ['ZCARD', key],
  '+zrange': (key) => ['ZRANGE', key, 0, 0],
  '+zremrangebyscore': (key) => ['ZREMRANGEBYSCORE', key, 0, 0],
  '+xadd': (key) => ['XADD', key, '*', 'f', '1'],
  '+xrange': (key) => ['XRANGE', key, '-', '+', 'COUNT', 1],
  '+xrevrange': (key) => ['XREVRANGE', key, '+', '-', 'COUNT', 1],
  '+xread': (key) => ['XREAD', 'COUNT', 1, 'STREAMS', key, '0'],
  '+xinfo|stream': (key) => ['XINFO', 'STREAM', key],
  '+del': (key) => ['DEL', key],
};

/** The rights of docs/redis.md but AUTH and QUIT, which a connection shows. */
export const TRIED_RIGHTS: readonly string[] = [...Object.keys(OF_SERVER), ...Object.keys(OF_KEY)];

/**
 * The rights that the user of this connection lacks, in the words of ACL SETUSER. `key`: a free one
 * of the merchant.
 * @throws StoreError when the server does not answer
 */
async function missingRights(redis: RedisClient, key: string): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const [right, words] of Object.entries(OF_SERVER))
    if ((await refusalOf(redis, words)) !== undefined) missing.push(right);
  for (const [right, words] of Object.entries(OF_KEY)) {
    const refusal = await refusalOf(redis, words(key));
    if (refusal === 'key') return [...missing, `~${key.slice(0, key.indexOf('}') + 1)}:*`];
    if (refusal === 'command') missing.push(right);
    // Without the text under the key the next commands would write.
    if (refusal === 'command' && right === WRITE) return missing;
  }
  return missing;
}

/** The refused part, if any; other replies come after the check of rights. */
async function refusalOf(redis: RedisClient, [command, ...words]: Words): Promise<'command' | 'key' | undefined> {
  try {
    await answered(redis.call(command, ...words));
    return undefined;
  } catch (thrown) {
    const cause = thrown instanceof StoreError ? thrown.cause : undefined;
    if (!(cause instanceof Error) || cause.name !== 'ReplyError') throw thrown;
    if (!cause.message.startsWith('NOPERM')) return undefined;
    return /\bkeys?\b/.test(cause.message) ? 'key' : 'command';
  }
}
