/** What store and chain hold about the payments of a run. */

import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import type { CommerceEvent } from '../../src/events/event.ts';
import type { PaymentRecord } from '../../src/payments/ledger/ledger.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import type { ChainAccess } from '../../tools/local-world/chain.ts';
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

/** Reads the store directly, without the gateway's code. */
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

/** What a store holds, as it is written there. */
interface Stored {
  records(): Promise<readonly PaymentRecord[]>;
  receipts(): Promise<readonly Receipt[]>;
  /** Oldest first. */
  events(): Promise<StoreLedger['events']>;
  close(): void;
}

/** Connects to a Redis that is not killed any more. */
export function openRedisReader(socketPath: string): StoreReader {
  const redis = new Redis({ path: socketPath });
  // The failing command reports the error.
  redis.on('error', () => undefined);
  return readerOf({
    async records() {
      const found: PaymentRecord[] = [];
      let cursor = '0';
      do {
        const [next, keys] = await redis.scan(cursor, 'MATCH', `${PREFIX}pay:*`, 'COUNT', PAGE);
        found.push(...(await documentsOf<PaymentRecord>(redis, keys)));
        cursor = next;
      } while (cursor !== '0');
      return found;
    },
    receipts: () => receiptsOf(redis),
    events: () => eventsOf(redis),
    close: () => redis.disconnect(),
  });
}

/** Opens the file of a gateway. */
export function openSqliteReader(path: string): StoreReader {
  const db = new DatabaseSync(path, { readOnly: true });
  const all = async <Content>(select: string): Promise<readonly Content[]> =>
    db
      .prepare(select)
      .all()
      .map(({ json }) => JSON.parse(String(json)) as Content);
  return readerOf({
    records: () => all("SELECT value AS json FROM documents WHERE key GLOB 'pay:*'"),
    receipts: () => all("SELECT value AS json FROM documents WHERE key GLOB 'rcpt:receipt_*'"),
    events: () => all('SELECT event AS json FROM events ORDER BY n'),
    close: () => db.close(),
  });
}

function readerOf({ records, receipts, events, close }: Stored): StoreReader {
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
      const ofPayments = Map.groupBy(await receipts(), ({ payment }) => payment?.replayKey ?? '');
      return { payments: new Map(payments), receipts: ofPayments, events: await events() };
    },
    close,
  };
}

async function receiptsOf(redis: Redis): Promise<readonly Receipt[]> {
  const lists = await Promise.all(RECEIPT_LISTS.map((list) => redis.zrange(`${PREFIX}rcpt:${list}`, '0', '-1')));
  const ids = new Set(lists.flat().map((member) => member.split(' ', 1)[0]));
  const keys = [...ids].map((id) => `${PREFIX}rcpt:${id}`);
  return documentsOf(redis, keys);
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

/** What the chain shows of one nonce. */
type Spent = 'paid' | 'elsewhere' | 'cancelled';

interface Use {
  readonly how: Spent;
  readonly transaction: string;
  readonly chainId: number;
  /** What it paid the payee, base units. */
  readonly units: bigint;
}

/** Used nonces (lower case) and their transactions. */
export interface ChainLedger {
  readonly spent: ReadonlyMap<string, Use>;
  /**
   * Sum of all transfers to the payee, base units: by any sender, with or without an authorization.
   */
  readonly income: bigint;
}

/** One ledger of several chains: no two have a nonce in common. */
export function together(chains: readonly ChainLedger[]): ChainLedger {
  return {
    spent: new Map(chains.flatMap(({ spent }) => [...spent])),
    income: chains.reduce((sum, { income }) => sum + income, 0n),
  };
}

const USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';
const CANCELED = '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81';
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
/** Blocks for each request. */
const RANGE = 2_000;

interface Log {
  readonly topics: readonly string[];
  readonly data: string;
  readonly transactionHash: string;
}

/** Reads the whole history of the token from the chain alone. */
export async function readChain(chain: ChainAccess, payTo: string, priceUnits: bigint): Promise<ChainLedger> {
  const payee = payTo.toLowerCase().slice(2);
  const isPayment = (log: Log | undefined): boolean =>
    log?.topics[0] === TRANSFER && log.topics[2]?.endsWith(payee) === true && BigInt(log.data) === priceUnits;
  const logs = await allLogs(chain);
  const spent = new Map<string, Use>();
  const { chainId } = chain;
  let income = 0n;
  for (const [at, { topics, data, transactionHash: transaction }] of logs.entries()) {
    const [event, , subject = ''] = topics;
    if (event === TRANSFER && subject.endsWith(payee)) income += BigInt(data);
    if (event === CANCELED) spent.set(subject, { how: 'cancelled', transaction, chainId, units: 0n });
    if (event !== USED) continue;
    const use = isPayment(logs[at + 1])
      ? { how: 'paid' as const, units: priceUnits }
      : { how: 'elsewhere' as const, units: 0n };
    spent.set(subject, { ...use, transaction, chainId });
  }
  return { spent, income };
}

async function allLogs(chain: ChainAccess): Promise<readonly Log[]> {
  const head = Number(await chain.request('eth_blockNumber', []));
  const logs: Log[] = [];
  for (let from = 0; from <= head; from += RANGE) {
    const range = { fromBlock: hex(from), toBlock: hex(Math.min(from + RANGE - 1, head)) };
    logs.push(...((await chain.request('eth_getLogs', [{ address: chain.token.address, ...range }])) as Log[]));
  }
  return logs;
}

function hex(block: number): string {
  return `0x${block.toString(16)}`;
}
