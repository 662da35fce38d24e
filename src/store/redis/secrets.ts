import type { SharedSecrets } from '../../payments/pricing/token-keys.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';
import type { RedisKeys } from './keys.ts';

/** Shared values as plain strings: the first process writes one, all read it. */
export function redisSecrets(redis: RedisClient, keys: RedisKeys): SharedSecrets {
  return {
    async agree(name, candidate) {
      const key = keys.secret(name);
      const written = await answered(redis.set(key, candidate, 'NX'));
      if (written === 'OK') return candidate;
      // Lost between the two commands: the next look writes it again.
      return (await answered(redis.get(key))) ?? candidate;
    },
  };
}
