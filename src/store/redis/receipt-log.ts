/** The log of receipts in Redis: a stream of lines that wait, and a hash of what is sealed. */

import { createHash } from 'node:crypto';
import type { ReceiptLogStore, StoredReceipt } from '../../receipts/log/log-store.ts';
import type { ReceiptSeries } from '../../receipts/log/series.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';
import type { RedisKeys } from './keys.ts';
import { parts } from './reply.ts';
import { RECEIPT_PAGE, run, SEAL } from './script.ts';

/** Sorts after every id. */
const PAST_EVERY_ID = '~';

export function redisReceiptLog(redis: RedisClient, keys: RedisKeys, series: ReceiptSeries): ReceiptLogStore {
  const { receiptLines, receiptsSealed } = keys;
  const listed = [keys.receiptsDone, keys.receiptsOwed, keys.receiptsUnlisted];
  const fields = async (from: number, to: number, ...names: readonly ('c' | 'v')[]) => {
    const numbers = Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at);
    if (numbers.length === 0) return [];
    const wanted = numbers.flatMap((number) => names.map((name) => `${name}${number}`));
    const found = await answered(redis.hmget(receiptsSealed, ...wanted));
    return numbers.flatMap((number, at) => {
      const [checkpoint, versions = ''] = found.slice(at * names.length, (at + 1) * names.length);
      return typeof checkpoint === 'string' ? [{ number, checkpoint, versions: versions ?? '' }] : [];
    });
  };
  return {
    series,
    async waiting(after, limit) {
      const from = after === undefined ? '-' : `(${after}`;
      const entries = await answered(redis.xrange(receiptLines, from, '+', 'COUNT', limit));
      return entries.map(([position, [, line = '']]) => ({ position, atMs: Number.parseInt(position, 10), line }));
    },
    async bounds() {
      const [first, last] = await answered(redis.hmget(receiptsSealed, 'first', 'last'));
      return typeof last === 'string' ? { first: Number(first ?? 1), last: Number(last) } : undefined;
    },
    sealed: (from, to) => fields(from, to, 'c', 'v'),
    checkpoints: (from, to) => fields(from, to, 'c'),
    async seal({ number, checkpoint, versions }, { positions, trimmed, carried }) {
      const texts = carried.map(({ id, text }) => ({ id, sha1: createHash('sha1').update(text).digest('hex') }));
      const plan = { number, positions, trimmed, carried: texts };
      const rest = [checkpoint, versions, ...carried.map(({ line }) => line)];
      const execution = { keys: [receiptLines, receiptsSealed, keys.receipts], plan, rest };
      return (await run(redis, SEAL, execution)) === 1;
    },
    async receipts(than, limit) {
      const max = than === undefined ? `[${PAST_EVERY_ID}` : `(${than}`;
      const [, ids, found] = parts(
        await run(redis, RECEIPT_PAGE, {
          keys: [keys.receipts, keys.receiptsUnlisted, ...listed],
          plan: { min: '[', max, count: limit, cut: 0 },
        }),
      );
      const texts = parts(found);
      return parts(ids).map((id, at): StoredReceipt => {
        const text = texts[at];
        return { id: String(id), text: typeof text === 'string' ? text : undefined };
      });
    },
    async receiptsOf(ids) {
      const found = new Map<string, string>();
      if (ids.length === 0) return found;
      const texts = await answered(redis.hmget(keys.receipts, ...ids));
      for (const [at, id] of ids.entries()) {
        const text = texts[at];
        if (typeof text === 'string') found.set(id, text);
      }
      return found;
    },
  };
}
