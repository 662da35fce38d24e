import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { MAX_PARKED_CALLS, type ParkedCalls } from '../../payments/parked-calls.ts';
import { assertParkable, isParkedName } from '../parked.ts';
import { StoreError } from '../store.ts';
import type { RedisClient } from './client.ts';
import type { RedisKeys } from './keys.ts';
import { PARK, run, TAKE } from './script.ts';

/** How long a taken call stays for its taker, milliseconds: longer than all of his attempts. */
const TAKEN_KEPT_MS = 5_000;
/** Pauses before a take whose reply was lost is sent again, milliseconds: the client reconnects in about the first. */
const AGAIN_MS: readonly number[] = [150, 300, 600];

/** Parked calls: one hash, and their ends beside it. */
export function redisParked(redis: RedisClient, keys: RedisKeys): ParkedCalls {
  const touched = [keys.parked, keys.parkedEnds];
  return {
    async park(name, call, forMs) {
      assertParkable(name, call, forMs);
      const plan = { name, forMs, maxParked: MAX_PARKED_CALLS };
      await run(redis, PARK, { keys: touched, plan, bytes: Buffer.from(call) });
    },
    async take(name) {
      if (!isParkedName(name)) return undefined;
      // One token for all attempts: whoever took the call finds it again, and nobody else does.
      const plan = { name, taker: randomUUID(), takenMs: TAKEN_KEPT_MS };
      const taken = await untilAnswered(() => run(redis, TAKE, { keys: touched, plan }));
      return typeof taken === 'string' ? taken : undefined;
    },
  };
}

/** Asks again only while an attempt may stand: a take that never left has taken nothing. @throws StoreError */
async function untilAnswered(ask: () => Promise<unknown>): Promise<unknown> {
  let first: StoreError | undefined;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await ask();
    } catch (thrown) {
      if (!(thrown instanceof StoreError)) throw thrown;
      first ??= thrown;
      const pauseMs = AGAIN_MS[attempt];
      if (!first.mayStand || pauseMs === undefined) throw first;
      await pause(pauseMs);
    }
  }
}
