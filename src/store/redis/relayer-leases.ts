/** Leases on relayer accounts in Redis: a string for each, which ends by itself. */

import type { RelayerLeases } from '../../payments/relayer-leases.ts';
import type { RedisClient } from './client.ts';
import type { RedisKeys } from './keys.ts';
import { RELAYER, run } from './script.ts';

export function redisRelayerLeases(redis: RedisClient, keys: RedisKeys): RelayerLeases {
  const ask = (accounts: readonly string[], plan: object): Promise<unknown> =>
    run(redis, RELAYER, { keys: accounts.map(keys.relayer), plan });
  return {
    async lease(owner, accounts, forMs) {
      // Counted from 1; 0 is none.
      const place = Number(await ask(accounts, { command: 'lease', owner, forMs }));
      return accounts[place - 1];
    },
    async release(owner, accounts) {
      await ask(accounts, { command: 'release', owner });
    },
  };
}
