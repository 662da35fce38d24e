import { LedgerCorruption } from '../../payments/ledger/invariants.ts';
import type { PaymentRecord } from '../../payments/ledger/ledger.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';
import type { RedisKeys } from './keys.ts';
import { parts, recordFrom } from './reply.ts';
import { DUE, FORGET, run } from './script.ts';

/** One record as it is stored, or undefined. @throws LedgerCorruption, StoreError */
export async function readRecord(
  redis: RedisClient,
  keys: RedisKeys,
  payId: string,
): Promise<PaymentRecord | undefined> {
  const fields = Object.entries(await answered(redis.hgetall(keys.payment(payId))));
  return fields.length === 0 ? undefined : recordFrom(fields);
}

/**
 * Records whose `dueAt` has come on the store's clock, the longest overdue first. A damaged record is passed over, so that it cannot
 * stop the work on all others; who asks for it by its id hears of it. @throws StoreError
 */
export async function dueRecords(
  redis: RedisClient,
  keys: RedisKeys,
  limit: number,
): Promise<readonly PaymentRecord[]> {
  const found = new Map<string, PaymentRecord>();
  for (let passed = 0; found.size < limit; ) {
    const [clock, listed] = parts(await run(redis, DUE, { keys: [keys.open], plan: { offset: passed, limit } }));
    const ids = parts(listed).map(String);
    const entries = await Promise.all(ids.map((payId) => workAt(redis, keys, payId)));
    for (const entry of entries) {
      if (entry !== 'gone') passed += 1;
      // Between the two reads somebody may have begun to work on it.
      if (typeof entry === 'object' && entry.dueAt <= Number(clock) && found.size < limit)
        found.set(entry.payId, entry);
    }
    if (ids.length < limit) break;
  }
  return [...found.values()];
}

/** Time takes the records away, but not their entries in the list: those go as they are met. */
async function workAt(redis: RedisClient, keys: RedisKeys, payId: string): Promise<PaymentRecord | 'damaged' | 'gone'> {
  try {
    const record = await readRecord(redis, keys, payId);
    if (record !== undefined) return record;
  } catch (thrown) {
    if (thrown instanceof LedgerCorruption) return 'damaged';
    throw thrown;
  }
  await run(redis, FORGET, { keys: [keys.payment(payId), keys.open], plan: { payId } });
  return 'gone';
}
