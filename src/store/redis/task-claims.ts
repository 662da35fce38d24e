/** Claims of A2A tasks in Redis: a hash for each task, and a sorted set of the declined ones. */

import { DECLINED, MAX_DECLINED, type TaskClaims } from '../../payments/settlement/task-claims.ts';
import { assertClaimant, assertNames, assertSpan } from '../port/task-claim.ts';
import type { RedisClient } from './client.ts';
import type { RedisKeys } from './keys.ts';
import { run, TASK } from './script.ts';

const DONE = 1;

export function redisTaskClaims(redis: RedisClient, keys: RedisKeys): TaskClaims {
  const ask = (name: string, plan: object): Promise<unknown> =>
    run(redis, TASK, { keys: [keys.task(name), keys.tasksDeclined], plan: { name, declined: DECLINED, ...plan } });
  return {
    async holder(task) {
      assertNames(task);
      const holder = String(await ask(task, { command: 'holder' }));
      return holder === '' ? undefined : holder;
    },
    async claim(task, claimant, attempt, forMs) {
      assertClaimant(claimant);
      assertNames(task, attempt);
      assertSpan(forMs);
      return (await ask(task, { command: 'claim', claimant, attempt, forMs })) === DONE;
    },
    async end(task, claimant, attempt, how) {
      assertClaimant(claimant);
      assertNames(task, attempt);
      await ask(task, { command: 'end', claimant, attempt, how });
    },
    async decline(task, forMs) {
      assertNames(task);
      assertSpan(forMs);
      return (await ask(task, { command: 'decline', forMs, maxDeclined: MAX_DECLINED })) === DONE;
    },
  };
}
