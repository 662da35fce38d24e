/** The book of receipts in Redis: a hash of JSON, and sorted sets that order the ids. */

import { createHash } from 'node:crypto';
import type { Receipt, ReceiptBook } from '../../receipts/receipt.ts';
import type { Entry } from '../port/page.ts';
import { indexFor, parseReceipt, type ReceiptIndex, receiptPage, type TrimCount } from '../port/receipts.ts';
import type { StoreLimits } from '../port/settings.ts';
import { TRIMMED_AT_ONCE } from '../port/store.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';
import { bookKeys, type RedisKeys } from './keys.ts';
import { parts } from './reply.ts';
import { RECEIPT, RECEIPT_PAGE, run, TIDY } from './script.ts';

/** Sorts after every id. */
const PAST_EVERY_ID = '~';
const NAME_LENGTH = 22;

interface RedisReceipts extends ReceiptBook {
  /** Drops some receipts over the bounds. True: there may be more. */
  tidy(): Promise<boolean>;
}

export function redisReceipts(
  redis: RedisClient,
  keys: RedisKeys,
  limits: StoreLimits,
  trimmed: TrimCount,
): RedisReceipts {
  const { receiptsMaxLength, receiptsMaxAgeMs } = limits;
  const book = bookKeys(keys);
  const bounds = { receiptsMaxLength, trimmedAtOnce: TRIMMED_AT_ONCE };

  const put = async (receipts: readonly Receipt[], onlyNew: boolean): Promise<readonly string[]> => {
    const written = receipts.map((receipt) => ({ id: receipt.id, json: JSON.stringify(receipt) }));
    const [dropped, ids] = parts(
      await run(redis, RECEIPT, { keys: book, plan: { receipts: written, onlyNew, ...bounds } }),
    );
    trimmed.add({ length: Number(dropped) });
    return parts(ids).map(String);
  };
  const older = (index: ReceiptIndex) => {
    const { sources, name } = rangeOf(index, keys);
    const read = [keys.receipts, ...sources];
    return async (than: string | undefined, count: number): Promise<readonly Entry<Receipt>[]> => {
      const max = than === undefined ? `[${name}${PAST_EVERY_ID}` : `(${name}${than}`;
      const plan = { min: `[${name}`, max, count, cut: name.length };
      const [ids, found] = parts(await run(redis, RECEIPT_PAGE, { keys: read, plan }));
      const documents = parts(found);
      return parts(ids).map((id, i) => {
        const json = documents[i];
        return { id: String(id), item: typeof json === 'string' ? parseReceipt(json) : undefined };
      });
    };
  };
  return {
    async write(receipts) {
      await put(receipts, false);
    },
    add: (receipts) => put(receipts, true),
    page: (query) => receiptPage(query, older(indexFor(query))),
    async counts() {
      const sizes = [keys.receiptsDone, keys.receiptsOwed, keys.receiptsUncertain].map((key) => redis.zcard(key));
      const [done = 0, owed = 0, uncertain = 0] = await answered(Promise.all(sizes));
      return { done, owed, uncertain };
    },
    trimmed: () => trimmed.inAll(),
    async trimmedRange() {
      const [from, to] = await answered(redis.hmget(keys.receiptsTrimmed, 'from', 'to'));
      return typeof from === 'string' && typeof to === 'string' ? { from, to } : undefined;
    },
    async tidy() {
      const age = receiptsMaxAgeMs === undefined ? {} : { maxAgeMs: receiptsMaxAgeMs };
      const [over = 0, old = 0] = parts(await run(redis, TIDY, { keys: book, plan: { ...bounds, ...age } })).map(
        Number,
      );
      trimmed.add({ length: over, age: old });
      return over === TRIMMED_AT_ONCE || old === TRIMMED_AT_ONCE;
    },
  };
}

/** The sorted sets that hold the ids of an index, and the name before each id. */
function rangeOf(index: ReceiptIndex, keys: RedisKeys): { readonly sources: readonly string[]; readonly name: string } {
  switch (index.kind) {
    case 'call':
      return { sources: [keys.receiptNames], name: nameOf('call', index.callId) };
    case 'request':
      return { sources: [keys.receiptNames], name: nameOf('request', index.requestId) };
    case 'payment':
      return { sources: [keys.receiptNames], name: nameOf('payment', index.payment) };
    case 'uncertain':
      return { sources: [keys.receiptsUncertain], name: '' };
    case 'delivered':
      return { sources: [index.delivered ? keys.receiptsDone : keys.receiptsOwed], name: '' };
    case 'all':
      return { sources: [keys.receiptsDone, keys.receiptsOwed], name: '' };
  }
}

/** The twin of `name_of` in book.lua. */
function nameOf(kind: 'call' | 'payment' | 'request', value: string): string {
  return createHash('sha1').update(`${kind}:${value}`).digest('hex').slice(0, NAME_LENGTH);
}
