/** The Lua scripts of the store, and how they are run. */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Cluster } from 'ioredis';
import type { RedisClient } from './client.ts';

/** A script, and the digest by which a server knows it. */
export interface Script {
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
export async function loadScripts(redis: RedisClient): Promise<void> {
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
