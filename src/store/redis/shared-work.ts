/** The budget of unpaid work in Redis, for all processes: two sorted sets for each holder. */

import type { SharedWork } from '../../payments/settlement/unpaid-work.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';
import type { RedisKeys } from './keys.ts';
import { parts } from './reply.ts';
import { run, WORK } from './script.ts';

export function redisSharedWork(redis: RedisClient, names: RedisKeys): SharedWork {
  const ask = async (holders: readonly string[], plan: object): Promise<readonly [number, number]> => {
    const keys = holders.flatMap((holder) => [names.working(holder), names.workedUnpaid(holder)]);
    const [place, leftMs] = parts(await run(redis, WORK, { keys, plan }));
    return [Number(place), Number(leftMs)];
  };
  return {
    async take(name, bounds, forMs) {
      const holders = bounds.map(([holder]) => holder);
      const [place, spentForMs] = await ask(holders, {
        ...{ command: 'take', name, forMs },
        most: bounds.map(([, most]) => most),
      });
      // Counted from 1; 0 is none.
      const holder = holders[place - 1];
      return holder === undefined ? undefined : { holder, spentForMs };
    },
    async leave(name, holders, unpaid) {
      // Only a call that may still be paid is looked for by its name.
      if (unpaid?.name === name)
        await answered(redis.set(names.workHolders(unpaid.name), JSON.stringify(holders), 'PX', unpaid.forMs));
      await ask(holders, { command: 'leave', name, unpaid: unpaid?.name, forMs: unpaid?.forMs });
    },
    async free(unpaid) {
      const holders = await answered(redis.get(names.workHolders(unpaid)));
      if (holders !== null) await ask(JSON.parse(holders) as string[], { command: 'free', name: '', unpaid });
    },
    listed: (holder, limit) =>
      answered(redis.zrange(names.workedUnpaid(holder), '+inf', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, limit)),
  };
}
