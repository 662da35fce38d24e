/** What the store holds about the payments of a run. */

import { Redis } from 'ioredis';
import type { CommerceEvent } from '../../src/events/event.ts';
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

const TAG = `{acg:${MERCHANT_ID}}`;
const OPEN = new Set(['reserved', 'settling', 'settled']);
const WAITING = new Set(['worked']);
const PAGE = 1_000;

/** Connects to a Redis that is not killed any more. */
export function openStoreReader(socketPath: string): StoreReader {
  const redis = new Redis({ path: socketPath });
  // The failing command reports the error.
  redis.on('error', () => undefined);
  const fields = async (...names: readonly string[]): Promise<readonly (readonly [string, ...(string | null)[]])[]> => {
    const found: [string, ...(string | null)[]][] = [];
    let cursor = '0';
    do {
      const [next, keys] = await redis.scan(cursor, 'MATCH', `${TAG}:pay:*`, 'COUNT', PAGE);
      const rows = await Promise.all(keys.map((key) => redis.hmget(key, ...names)));
      for (const [at, key] of keys.entries()) found.push([key.slice(`${TAG}:pay:`.length), ...(rows[at] ?? [])]);
      cursor = next;
    } while (cursor !== '0');
    return found;
  };
  const inStates = async (states: ReadonlySet<string>): Promise<readonly string[]> => {
    const rows = await fields('state');
    return rows.filter(([, state]) => states.has(state ?? '')).map(([payId, state]) => `${payId} ${state}`);
  };
  return {
    open: () => inStates(OPEN),
    waiting: () => inStates(WAITING),
    async read() {
      const rows = await fields('state', 'receiptId', 'recovered', 'tokenDigest');
      const payments = rows.map(([payId, state, receiptId, recovered, token]) => {
        const known = { recovered: recovered !== null, hasToken: token !== null };
        const payment = { state: state ?? '', receiptId: receiptId ?? '', ...known };
        return [payId, payment] as const;
      });
      return { payments: new Map(payments), receipts: await receiptsOf(redis), events: await eventsOf(redis) };
    },
    close: () => redis.disconnect(),
  };
}

async function receiptsOf(redis: Redis): Promise<ReadonlyMap<string, readonly Receipt[]>> {
  const all = Object.values(await redis.hgetall(`${TAG}:rcpt`)).map((json) => JSON.parse(json) as Receipt);
  return Map.groupBy(all, ({ payment }) => payment?.replayKey ?? '');
}

async function eventsOf(redis: Redis): Promise<readonly Omit<CommerceEvent, 'id'>[]> {
  const events: Omit<CommerceEvent, 'id'>[] = [];
  let from = '-';
  for (;;) {
    const page = await redis.xrange(`${TAG}:ev`, from, '+', 'COUNT', PAGE);
    for (const [, pairs] of page) events.push(JSON.parse(pairs[pairs.indexOf('e') + 1] ?? '') as CommerceEvent);
    const last = page.at(-1)?.[0];
    if (last === undefined || page.length < PAGE) return events;
    from = `(${last}`;
  }
}
