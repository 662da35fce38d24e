/** What the store holds about the payments of a run. */

import { Redis } from 'ioredis';
import type { CommerceEvent } from '../../src/events/event.ts';
import type { PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { MERCHANT_ID } from './fleet.ts';

/** What is left in the store of one payment. */
export interface StoredPayment {
  readonly state: string;
  readonly receiptId: string;
  readonly recovered: boolean;
  /** Whether the record keeps the digest of a buyer's token. */
  readonly hasToken: boolean;
}

/** The records, receipts and events of the store. */
export interface StoreLedger {
  /** By payId. */
  readonly payments: ReadonlyMap<string, StoredPayment>;
  /** By payId (`payment.replayKey`); more than one for a payment would be a mistake. */
  readonly receipts: ReadonlyMap<string, readonly Receipt[]>;
  /** Oldest first. */
  readonly events: readonly Omit<CommerceEvent, 'id'>[];
}

/** Reads Redis directly, without the gateway's code. */
export interface StoreReader {
  /** payIds of records that a process or the reconciler has to finish, and their states. */
  open(): Promise<readonly string[]>;
  /** The same of those whose answer is kept and waits for its buyer to pay. */
  waiting(): Promise<readonly string[]>;
  read(): Promise<StoreLedger>;
  close(): void;
}

const PREFIX = `{acg:${MERCHANT_ID}}:`;
/** Before the value of a document stands its version, characters. */
const VERSION_LENGTH = 16;
const OPEN = new Set(['reserved', 'settling', 'settled']);
const WAITING = new Set(['worked']);
const RECEIPT_LISTS = ['done', 'owed', 'uncertain'];
const PAGE = 1_000;

/** Connects to a Redis that is not killed any more. */
export function openStoreReader(socketPath: string): StoreReader {
  const redis = new Redis({ path: socketPath });
  // The failing command reports the error.
  redis.on('error', () => undefined);
  const records = async (): Promise<readonly PaymentRecord[]> => {
    const found: PaymentRecord[] = [];
    let cursor = '0';
    do {
      const [next, keys] = await redis.scan(cursor, 'MATCH', `${PREFIX}pay:*`, 'COUNT', PAGE);
      found.push(...(await documentsOf<PaymentRecord>(redis, keys)));
      cursor = next;
    } while (cursor !== '0');
    return found;
  };
  const inStates = async (states: ReadonlySet<string>): Promise<readonly string[]> =>
    (await records()).filter(({ state }) => states.has(state)).map(({ payId, state }) => `${payId} ${state}`);
  return {
    open: () => inStates(OPEN),
    waiting: () => inStates(WAITING),
    async read() {
      const payments = (await records()).map(({ payId, state, receiptId, recovered, tokenDigest }) => {
        const known = { recovered: recovered !== undefined, hasToken: tokenDigest !== undefined };
        return [payId, { state, receiptId, ...known }] as const;
      });
      return { payments: new Map(payments), receipts: await receiptsOf(redis), events: await eventsOf(redis) };
    },
    close: () => redis.disconnect(),
  };
}

async function receiptsOf(redis: Redis): Promise<ReadonlyMap<string, readonly Receipt[]>> {
  const lists = await Promise.all(RECEIPT_LISTS.map((list) => redis.zrange(`${PREFIX}rcpt:${list}`, '0', '-1')));
  const ids = new Set(lists.flat().map((member) => member.split(' ', 1)[0]));
  const keys = [...ids].map((id) => `${PREFIX}rcpt:${id}`);
  return Map.groupBy(await documentsOf<Receipt>(redis, keys), ({ payment }) => payment?.replayKey ?? '');
}

async function documentsOf<Content>(redis: Redis, keys: readonly string[]): Promise<readonly Content[]> {
  const found: Content[] = [];
  for (let at = 0; at < keys.length; at += PAGE)
    for (const text of await redis.mget(...keys.slice(at, at + PAGE)))
      if (text !== null) found.push(JSON.parse(text.slice(VERSION_LENGTH)) as Content);
  return found;
}

async function eventsOf(redis: Redis): Promise<readonly Omit<CommerceEvent, 'id'>[]> {
  const events: Omit<CommerceEvent, 'id'>[] = [];
  let from = '-';
  for (;;) {
    const page = await redis.xrange(`${PREFIX}ev`, from, '+', 'COUNT', PAGE);
    for (const [, pairs] of page) events.push(JSON.parse(pairs[pairs.indexOf('e') + 1] ?? '') as CommerceEvent);
    const last = page.at(-1)?.[0];
    if (last === undefined || page.length < PAGE) return events;
    from = `(${last}`;
  }
}
