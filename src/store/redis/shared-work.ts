/** The budget of unpaid work in Redis, for all processes: two sorted sets for each holder. */

import type { SharedWork } from '../../payments/settlement/unpaid-work.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';
import { runScript, WORK } from './script.ts';

export function redisSharedWork(redis: RedisClient, prefix: string): SharedWork {
  const unpaidKey = (holder: string): string => `${prefix}work:unpaid:${holder}`;
  const holdersKey = (unpaid: string): string => `${prefix}work:of:${unpaid}`;
  const ask = async (
    holders: readonly string[],
    ...words: readonly (string | number)[]
  ): Promise<readonly number[]> => {
    const keys = holders.flatMap((holder) => [`${prefix}work:run:${holder}`, unpaidKey(holder)]);
    return (await answered(runScript(redis, WORK, keys, words.map(String)))) as readonly number[];
  };
  return {
    async take(name, bounds, forMs) {
      const holders = bounds.map(([holder]) => holder);
      const [place = 0, spentForMs = 0] = await ask(
        holders,
        'take',
        name,
        '',
        forMs,
        ...bounds.map(([, most]) => most),
      );
      // Counted from 1; 0 is none.
      const holder = holders[place - 1];
      return holder === undefined ? undefined : { holder, spentForMs };
    },
    async leave(name, holders, unpaid) {
      // Only a call that may still be paid is looked for by its name.
      if (unpaid?.name === name)
        await answered(redis.set(holdersKey(unpaid.name), JSON.stringify(holders), 'PX', unpaid.forMs));
      await ask(holders, 'leave', name, unpaid?.name ?? '', unpaid?.forMs ?? 0);
    },
    async free(unpaid) {
      const holders = await answered(redis.get(holdersKey(unpaid)));
      if (holders !== null) await ask(JSON.parse(holders) as string[], 'free', '', unpaid, 0);
    },
    listed: (holder, limit) =>
      answered(redis.zrange(unpaidKey(holder), '+inf', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, limit)),
  };
}
