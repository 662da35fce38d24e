import type { Receipt, ReceiptBook } from '../../receipts/receipt.ts';
import type { Entry } from '../page.ts';
import { parseReceipt, receiptPage } from '../receipt-json.ts';
import type { StoreLimits } from '../store.ts';
import type { RedisClient } from './client.ts';
import { answered } from './failure.ts';
import type { RedisKeys } from './keys.ts';
import { RECEIPT, run } from './script.ts';

/** The book of receipts: a hash of JSON and an index that sorts by id, so trimming needs no key that is not declared. */
export function redisReceipts(redis: RedisClient, keys: RedisKeys, limits: StoreLimits): ReceiptBook {
  const older = async (than: string | undefined, count: number): Promise<readonly Entry<Receipt>[]> => {
    const from = than === undefined ? '+' : `(${than}`;
    const ids = await answered(redis.zrevrangebylex(keys.receiptIndex, from, '-', 'LIMIT', 0, count));
    if (ids.length === 0) return [];
    const found = await answered(redis.hmget(keys.receipts, ...ids));
    return ids.map((id, i) => {
      const json = found[i];
      return { id, item: typeof json === 'string' ? parseReceipt(json) : undefined };
    });
  };
  return {
    async write(receipts) {
      const written = receipts.map((receipt) => ({ id: receipt.id, json: JSON.stringify(receipt) }));
      const plan = { receipts: written, receiptsMaxLength: limits.receiptsMaxLength };
      await run(redis, RECEIPT, { keys: [keys.receipts, keys.receiptIndex], plan });
    },
    page: (query) => receiptPage(query, older),
  };
}
