/** Opens the embedded store, for one process. */

import { randomUUID } from 'node:crypto';
import type { RegisterEpoch } from '../../mandates/register/register.ts';
import type { SharedSecrets } from '../../payments/pricing/buyer-token.ts';
import { trimCount } from '../port/receipts.ts';
import type { StoreLimits } from '../port/settings.ts';
import { type Store, StoreError, type StoreHealth } from '../port/store.ts';
import { sqliteCensus } from './census.ts';
import { sqliteCheckouts } from './checkouts.ts';
import { type Database, openDatabase } from './database.ts';
import { appendEvents, sqliteFeed } from './feed.ts';
import { sqliteLedger } from './ledger.ts';
import { registerRows, sqliteMandates } from './mandates.ts';
import { receiptRows, sqliteReceipts } from './receipts.ts';

/**
 * `path`: a file, whose directory is created, or `:memory:`. `now`: the store's clock,
 * milliseconds. `epoch`: what an empty register begins with, by default now. `log` hears of another
 * process that has the file.
 * @throws Error when the file cannot be used, is not ours, or is of another release
 */
export function openSqliteStore(options: {
  readonly path: string;
  readonly limits: StoreLimits;
  readonly now?: () => number;
  readonly epoch?: RegisterEpoch;
  readonly log?: { warn(fields: object, message: string): void } | undefined;
}): Store {
  const { path, limits, now = Date.now, log } = options;
  const warn =
    log && (() => log.warn({ path }, 'another process has this database open; several gateways need storage.redis'));
  const database = openDatabase(path, now, warn);
  const append = appendEvents(database, limits);
  const trimmed = trimCount();
  const rows = receiptRows(database, limits, trimmed);
  const register = registerRows(database);
  // A deleted file cannot be told from a first start.
  if (register.epoch() === undefined) register.begin(options.epoch ?? { born: now(), openFrom: 0 });
  return {
    name: 'sqlite',
    ledger: sqliteLedger(database, { append, put: rows.put, drop: rows.drop, register }),
    feed: sqliteFeed(database, append),
    receipts: sqliteReceipts(database, rows, trimmed),
    mandates: sqliteMandates(database, register),
    checkouts: sqliteCheckouts(database),
    secrets: sqliteSecrets(database),
    census: sqliteCensus(database),
    check: sqliteHealth(database),
    tidy: async () => {
      const more = await database.write((now) => rows.tidy(now));
      return database.giveBack() || more;
    },
    async close() {
      database.close();
    },
  };
}

/** Writes and reads back: a full disk still answers reads. */
function sqliteHealth(database: Database): () => Promise<StoreHealth> {
  const put = database.db.prepare(
    'INSERT INTO probe (id, token) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET token = excluded.token',
  );
  const get = database.db.prepare('SELECT token FROM probe WHERE id = 1');
  return async function check() {
    const token = randomUUID();
    try {
      await database.write(() => put.run(token));
      const read = await database.read(() => get.get()?.['token']);
      return read === token ? { status: 'ok' } : { status: 'unwritable', cause: 'a written value was not read back' };
    } catch (thrown) {
      const cause = thrown instanceof StoreError ? thrown.cause : thrown;
      return { status: 'unwritable', cause: cause instanceof Error ? cause.message : String(cause) };
    }
  };
}

/** Shared values: a file has one process at a time, and the next one finds them. */
function sqliteSecrets(database: Database): SharedSecrets {
  const insert = database.db.prepare('INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING');
  const select = database.db.prepare('SELECT value FROM secrets WHERE name = ?');
  return {
    agree: (name, candidate) =>
      database.write(() => {
        insert.run(name, candidate);
        return String(select.get(name)?.['value']);
      }),
  };
}
