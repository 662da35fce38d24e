import assert from 'node:assert/strict';
import type { Redis } from 'ioredis';
import type { RedisClient } from '../../src/store/redis/client.ts';
import type { Script } from '../../src/store/redis/script.ts';

const CLOCK = "redis.call('TIME')";
const [SECONDS, MICROSECONDS] = ['virtual:s', 'virtual:us'];

/**
 * A Redis whose scripts read the time from keys, which a test sets, to the millisecond. Keys still
 * expire in real time.
 */
export interface VirtualRedis {
  readonly client: RedisClient;
  set(nowMs: number): Promise<void>;
}

/** @throws AssertionError for a script without a clock */
export function virtualRedis(redis: Redis, scripts: readonly Script[]): VirtualRedis {
  const sources = new Map(scripts.map(({ sha, source }) => [sha, virtual(source)]));
  const evalsha = (sha: string, ...operands: [number, ...(string | Buffer)[]]): Promise<unknown> =>
    redis.eval(sources.get(sha) ?? assert.fail('an unknown script'), ...operands);
  return {
    client: new Proxy(redis, {
      get: (target, name): unknown => (name === 'evalsha' ? evalsha : Reflect.get(target, name, target)),
    }),
    async set(nowMs) {
      await redis.mset(SECONDS, Math.floor(nowMs / 1_000), MICROSECONDS, (nowMs % 1_000) * 1_000);
    },
  };
}

function virtual(source: string): string {
  const replaced = source.replace(CLOCK, `redis.call('MGET', '${SECONDS}', '${MICROSECONDS}')`);
  assert.notEqual(replaced, source, 'the script asks for no time');
  return replaced;
}
