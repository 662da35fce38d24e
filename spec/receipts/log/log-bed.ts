/** A book of receipts with its log, processes that write to it, and a hand that changes it. */

import assert from 'node:assert/strict';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Redis } from 'ioredis';
import { readSigningKey, type SigningKey } from '../../../src/crypto/signing-key.ts';
import type { ReceiptLogStore } from '../../../src/receipts/log/log-store.ts';
import { createSealer, type SealerOptions } from '../../../src/receipts/log/sealer.ts';
import { lineCodes, openSeries } from '../../../src/receipts/log/series.ts';
import { type LogReport, verifyReceiptLog } from '../../../src/receipts/log/verify.ts';
import type { StoreLimits } from '../../../src/store/port/settings.ts';
import type { Store } from '../../../src/store/port/store.ts';
import { openRedisStore } from '../../../src/store/redis/open.ts';
import { openSqliteStore } from '../../../src/store/sqlite/open.ts';

export const MERCHANT = 'shop';
export const KEY = freshKey();

export function freshKey(): SigningKey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const reading = readSigningKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  return reading.ok ? reading.key : assert.fail(reading.message);
}

/** What the store has, as it is stored. A hand may put it back changed. */
export interface Contents {
  /** Receipts that are on a list, by id. */
  readonly receipts: ReadonlyMap<string, string>;
  readonly sealed: ReadonlyMap<number, { readonly checkpoint: string; readonly versions: string }>;
  /** Lines that wait, in order. */
  readonly lines: readonly { readonly position: string; readonly line: string }[];
}

export interface LogBed {
  /** Opens the store as a process does that begins. */
  open(key?: SigningKey, limits?: StoreLimits): Promise<Store>;
  read(): Promise<Contents>;
  /** Replaces all that the store has. */
  put(contents: Contents): Promise<void>;
  close(): Promise<void>;
}

const LIMITS: StoreLimits = { eventsMaxLength: 100, receiptsMaxLength: 1_000 };

export function logOf({ receiptLog }: Store): ReceiptLogStore {
  return receiptLog ?? assert.fail('no log');
}

export async function seal(store: Store, more: Partial<SealerOptions> = {}): Promise<void> {
  await createSealer(logOf(store), { merchant: MERCHANT, key: KEY, maxVersions: 10_000, ...more }).seal();
}

export function verified(store: Store, more: Parameters<typeof verifyReceiptLog>[2] = {}): Promise<LogReport> {
  const trust = { merchant: MERCHANT, keys: [KEY.publicJwk], codes: lineCodes(KEY) };
  return verifyReceiptLog(logOf(store), trust, more);
}

/** The same store, and what happens just before one of the calls of its log. */
export function before(
  store: Store,
  call: Exclude<keyof ReceiptLogStore, 'series'>,
  nth: number,
  happens: () => Promise<unknown>,
): Store {
  let calls = 0;
  const receiptLog = new Proxy(logOf(store), {
    get(target, name: keyof ReceiptLogStore) {
      const member = target[name];
      if (name !== call || typeof member !== 'function') return member;
      return async (...args: never[]): Promise<unknown> => {
        calls += 1;
        if (calls === nth) await happens();
        return (member as (...args: never[]) => unknown).apply(target, args);
      };
    },
  });
  return { ...store, receiptLog };
}

/** Over a file, so that several processes can have it. */
export function sqliteBed(directory: string): LogBed {
  const path = join(directory, randomUUID(), 'gateway.db');
  const stores: Store[] = [];
  const rows = (sql: string) => {
    const db = new DatabaseSync(path, { timeout: 5_000 });
    try {
      return db.prepare(sql).all();
    } finally {
      db.close();
    }
  };
  return {
    async open(key = KEY, limits = LIMITS) {
      const store = openSqliteStore({ path, limits, series: openSeries(key) });
      stores.push(store);
      return store;
    },
    async read() {
      return {
        receipts: new Map(
          rows('SELECT id, receipt FROM receipts').map((row) => [String(row['id']), String(row['receipt'])]),
        ),
        sealed: new Map(
          rows('SELECT number, checkpoint, versions FROM receipt_checkpoints').map((row) => [
            Number(row['number']),
            { checkpoint: String(row['checkpoint']), versions: String(row['versions']) },
          ]),
        ),
        lines: rows('SELECT n, line FROM receipt_lines ORDER BY n').map((row) => ({
          position: `${row['n']}-0`,
          line: String(row['line']),
        })),
      };
    },
    async put({ receipts, sealed, lines }) {
      const db = new DatabaseSync(path, { timeout: 5_000 });
      db.exec('BEGIN IMMEDIATE; DELETE FROM receipts; DELETE FROM receipt_checkpoints; DELETE FROM receipt_lines');
      const receipt = db.prepare('INSERT INTO receipts (id, receipt) VALUES (?, ?)');
      for (const [id, text] of receipts) receipt.run(id, text);
      const checkpoint = db.prepare('INSERT INTO receipt_checkpoints VALUES (?, ?, ?)');
      for (const [number, one] of sealed) checkpoint.run(number, one.checkpoint, one.versions);
      const line = db.prepare('INSERT INTO receipt_lines VALUES (?, ?, ?)');
      for (const one of lines) line.run(Number.parseInt(one.position, 10), 0, one.line);
      db.exec('COMMIT');
      db.close();
    },
    async close() {
      for (const store of stores) await store.close();
    },
  };
}

export function redisBed(url: string, redis: Redis): LogBed {
  const merchantId = randomUUID();
  const stores: Store[] = [];
  const key = (name: string) => `{acg:${merchantId}}:rcpt${name}`;
  return {
    async open(signing = KEY, limits = LIMITS) {
      const store = await openRedisStore({ url, merchantId, limits, series: openSeries(signing) });
      stores.push(store);
      return store;
    },
    async read() {
      const [texts, fields, entries] = await Promise.all([
        redis.hgetall(key('')),
        redis.hgetall(key(':sealed')),
        redis.xrange(key(':lines'), '-', '+'),
      ]);
      const numbers = Object.keys(fields).flatMap((name) => (name.startsWith('c') ? [Number(name.slice(1))] : []));
      return {
        receipts: new Map(Object.entries(texts)),
        sealed: new Map(
          numbers
            .sort((one, other) => one - other)
            .map((number) => [
              number,
              { checkpoint: fields[`c${number}`] ?? '', versions: fields[`v${number}`] ?? '' },
            ]),
        ),
        lines: entries.map(([position, [, line = '']]) => ({ position, line })),
      };
    },
    async put({ receipts, sealed, lines }) {
      const batch = redis.multi();
      for (const name of ['', ':done', ':owed', ':sealed', ':lines']) batch.del(key(name));
      for (const [id, text] of receipts) {
        batch.hset(key(''), id, text);
        batch.zadd(key(text.includes('"delivered":true') ? ':done' : ':owed'), 0, id);
      }
      const numbers = [...sealed.keys()].sort((one, other) => one - other);
      if (numbers.length > 0) batch.hset(key(':sealed'), 'first', `${numbers[0]}`, 'last', `${numbers.at(-1)}`);
      for (const [number, one] of sealed)
        batch.hset(key(':sealed'), `c${number}`, one.checkpoint, `v${number}`, one.versions);
      for (const { position, line } of lines) batch.xadd(key(':lines'), position, 'l', line);
      await batch.exec();
    },
    async close() {
      for (const store of stores) await store.close();
    },
  };
}
