import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { LedgerCorruption } from '../../payments/ledger/invariants.ts';
import { StoreError } from '../port/store.ts';
import { groupCommit } from './group-commit.ts';
import { migrate } from './schema.ts';

/** How long a write waits for another process that holds the file, milliseconds. */
const BUSY_TIMEOUT_MS = 500;

/** Free pages that stay in the file: a book that is trimmed fills them again at once. */
const KEPT_PAGES = 1_024;
/** Pages given back in one step: 13 ms at most, in which nothing else runs. */
const PAGES_AT_ONCE = 256;

/** Errors of the caller or of the contents, not of the engine: they pass unchanged. */
const OWN_ERRORS = [LedgerCorruption, RangeError] as const;

/** The database and the one way to write to it. */
export interface Database {
  readonly db: DatabaseSync;
  /**
   * Runs `work` with one reading of the store's clock; all of it becomes durable or none, and the
   * answer comes when it is durable. Works of one turn of the event loop share a commit. `work` may
   * use `db` and must not wait.
   */
  write<T>(work: (now: number) => T): Promise<T>;
  /** Sees what was answered before, and never what is not committed. */
  read<T>(work: (now: number) => T): Promise<T>;
  /**
   * Resolves after the next commit of this process, after `atMostMs`, or when the database is
   * closed.
   */
  nextCommit(atMostMs: number, signal: AbortSignal): Promise<void>;
  /**
   * Gives some of the space back that nothing needs any more. True: there is more. @throws
   * StoreError
   */
  giveBack(): boolean;
  /** What was asked for before is committed and answered. */
  close(): void;
}

/** Opens or creates the file and its directory. @throws Error when it cannot be used. */
export function openDatabase(path: string, now: () => number): Database {
  const db = openFile(path);
  const waiting = new Set<() => void>();
  const wakeAll = (): void => {
    for (const wake of waiting) wake();
  };
  const group = groupCommit(db, wakeAll);
  return {
    db,
    write: (work) => group.write(() => work(now())).catch(rethrown),
    async read(work) {
      try {
        return work(now());
      } catch (thrown) {
        return rethrown(thrown);
      }
    },
    nextCommit: (atMostMs, signal) =>
      new Promise((resolve) => {
        const wake = (): void => {
          clearTimeout(timer);
          waiting.delete(wake);
          signal.removeEventListener('abort', wake);
          resolve();
        };
        const timer = setTimeout(wake, atMostMs).unref();
        waiting.add(wake);
        signal.addEventListener('abort', wake);
      }),
    giveBack() {
      try {
        if (freePages(db) <= KEPT_PAGES) return false;
        db.exec(`PRAGMA incremental_vacuum(${PAGES_AT_ONCE})`);
        return freePages(db) > KEPT_PAGES;
      } catch (thrown) {
        return rethrown(thrown);
      }
    },
    close() {
      if (!db.isOpen) return;
      group.drain();
      db.close();
      wakeAll();
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
    const shrinks = prepareForGivingBack(db);
    // FULL: a settlement that was acknowledged must survive a power cut, and in WAL mode that is
    // one fsync a commit.
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON');
    migrate(db);
    if (!shrinks) rebuildForGivingBack(db);
    return db;
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

/** `auto_vacuum` in the words of the engine. */
const INCREMENTAL = 2;

/**
 * A file can give pages back when it was told so before its first table. Answers whether it can.
 */
function prepareForGivingBack(db: DatabaseSync): boolean {
  db.exec('PRAGMA auto_vacuum = INCREMENTAL');
  return Number(db.prepare('PRAGMA auto_vacuum').get()?.['auto_vacuum']) === INCREMENTAL;
}

/**
 * An older file is written anew once, some seconds for a million receipts, and needs as much free
 * space as it takes. Where that is not to be had, or somebody else has the file open, it stays as
 * it is and only never shrinks.
 */
function rebuildForGivingBack(db: DatabaseSync): void {
  try {
    db.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM');
  } catch {
    // Nothing is lost by it, and the next start tries again.
  }
}

function freePages(db: DatabaseSync): number {
  return Number(db.prepare('PRAGMA freelist_count').get()?.['freelist_count'] ?? 0);
}

/** @throws StoreError for whatever the engine threw. */
function rethrown(thrown: unknown): never {
  if (OWN_ERRORS.some((own) => thrown instanceof own)) throw thrown;
  // A transaction that failed is rolled back, also one that failed in its commit.
  throw new StoreError(thrown, false);
}
