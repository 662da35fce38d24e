/** Counts the open payments in Redis, for the metrics. */

import { CENSUS_LIMIT, countOpen, type OpenPayment, type PaymentCensus } from '../../payments/ledger/census.ts';
import { OPEN_STATES } from '../../payments/ledger/transitions.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';
import type { RedisKeys } from './keys.ts';
import { parts } from './reply.ts';
import { CENSUS, run } from './script.ts';

/** Counts the work list. Reads three fields of a record, never its proof. @throws StoreError */
export function redisCensus(redis: RedisClient, keys: RedisKeys): () => Promise<PaymentCensus> {
  return async function census() {
    const [open, ids] = await Promise.all([
      answered(redis.zcard(keys.open)),
      answered(redis.zrange(keys.open, '0', String(CENSUS_LIMIT - 1))),
    ]);
    if (ids.length === 0) return { open, uncertain: 0, undelivered: 0 };
    const [clock, ...fields] = parts(await run(redis, CENSUS, { keys: ids.map(keys.payment), plan: {} }));
    return { open, ...countOpen(openPayments(fields), Number(clock)) };
  };
}

function* openPayments(fields: readonly unknown[]): Generator<OpenPayment> {
  for (let at = 0; at < fields.length; at += 3) {
    const state = OPEN_STATES.find((open) => open === fields[at]);
    if (state !== undefined) yield { state, leaseUntil: Number(fields[at + 1]), reason: String(fields[at + 2]) };
  }
}
