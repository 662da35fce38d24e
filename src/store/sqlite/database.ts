import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { LedgerCorruption } from '../../payments/ledger/invariants.ts';
import { StoreError } from '../store.ts';
import { migrate } from './schema.ts';

/** How long a write waits for another process that holds the file, milliseconds. */
const BUSY_TIMEOUT_MS = 500;

/** Errors of the caller or of the contents, not of the engine: they pass unchanged. */
const OWN_ERRORS = [LedgerCorruption, RangeError] as const;

/** The database and the one way to write to it. */
export interface Database {
  readonly db: DatabaseSync;
  /**
   * Runs `work` in one transaction with one reading of the store's clock; all of it becomes durable or none.
   * Whoever awaits it may be answered later than the work ran: several works could share a commit here (group commit).
   */
  write<T>(work: (now: number) => T): Promise<T>;
  read<T>(work: (now: number) => T): Promise<T>;
  close(): void;
}

/** Opens or creates the file and its directory. @throws Error when it cannot be used. */
export function openDatabase(path: string, now: () => number): Database {
  const db = openFile(path);
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');
  return {
    db,
    async write(work) {
      return translated(() => {
        begin.run();
        try {
          const result = work(now());
          commit.run();
          return result;
        } catch (thrown) {
          if (db.isTransaction) rollback.run();
          throw thrown;
        }
      });
    },
    async read(work) {
      return translated(() => work(now()));
    },
    close() {
      if (db.isOpen) db.close();
    },
  };
}

function openFile(path: string): DatabaseSync {
  if (path !== ':memory:') {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    // Created here for its mode: the file holds payers and their proofs.
    closeSync(openSync(path, 'a', 0o600));
  }
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    // FULL: a settlement that was acknowledged must survive a power cut, and in WAL mode that is one fsync a commit.
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON');
    migrate(db);
    return db;
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

function translated<T>(work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    if (OWN_ERRORS.some((own) => thrown instanceof own)) throw thrown;
    throw new StoreError(thrown);
  }
}
