/**
 * A redis-server for the tests: $TEST_REDIS_SERVER, else the one on PATH, else Debian's. As a
 * script it prepares the cache.
 */
import { debianProgram, type Program, prepare } from './debian.ts';

export type RedisServer = Program;

/** Finds or unpacks one. @throws Error of one line when there is none and none can be had. */
export function redisServer(): Promise<RedisServer> {
  return debianProgram({
    name: 'redis-server',
    variable: 'TEST_REDIS_SERVER',
    folder: 'redis',
    packages: { names: ['redis-server', 'redis-tools'] },
    path: 'usr/bin/redis-server',
  });
}

if (import.meta.main) await prepare(redisServer);
