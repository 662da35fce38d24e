/** Tries each command that a gateway sends to Redis, on a key that nothing else uses. */

import { StoreError } from '../../store/port/store-error.ts';
import type { RedisClient } from '../../store/redis/client.ts';
import { answered } from '../../store/redis/failure.ts';

/** How long the key stays where it cannot be deleted, milliseconds. */
const KEEP_MS = 10_000;
/** An end that is no change, because the key has an earlier one, milliseconds. */
const FAR_MS = 10_000_000_000_000;
const SCRIPT = 'return 1';
/** The digest of a script that no server has: it is looked for behind the check of rights. */
const UNKNOWN_SHA = '0'.repeat(40);
const WRITE = '+set';

type Words = readonly [command: string, ...words: (string | number)[]];

/** What no key is needed for. */
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
 * The key holds a text while these are tried, so that commands for other types end with an error
 * behind the check of rights, and change nothing.
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

/** Those of docs/redis.md but AUTH and QUIT, which a connection shows. */
export const TRIED_RIGHTS: readonly string[] = [...Object.keys(OF_SERVER), ...Object.keys(OF_KEY)];

/**
 * What the user of this connection lacks, in the words of ACL SETUSER. `key`: a free one of the
 * merchant.
 * @throws StoreError when the server does not answer
 */
export async function missingRights(redis: RedisClient, key: string): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const [right, words] of Object.entries(OF_SERVER))
    if ((await refusalOf(redis, words)) !== undefined) missing.push(right);
  for (const [right, words] of Object.entries(OF_KEY)) {
    const refusal = await refusalOf(redis, words(key));
    if (refusal === 'key') return [...missing, `~${key.slice(0, key.indexOf('}') + 1)}:*`];
    if (refusal === 'command') missing.push(right);
    // Without the text under the key the others would write.
    if (refusal === 'command' && right === WRITE) return missing;
  }
  return missing;
}

/** What is not allowed; any other reply comes from behind the check of rights. */
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
