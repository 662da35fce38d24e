/** The tables of the embedded store. */

import type { DatabaseSync } from 'node:sqlite';

/** Written into the file, so that a foreign database is not mistaken for ours ("ACG1"). */
const APPLICATION_ID = 0x41434731;
/** Raised with every change of the tables: a gateway reads files of its own version alone. */
const SCHEMA_VERSION = 3;

const SCHEMA = `
  -- ends: milliseconds; null for what does not end. value: text, or the bytes of an answer.
  CREATE TABLE documents (key TEXT PRIMARY KEY, version TEXT NOT NULL, ends INTEGER, value BLOB NOT NULL);
  CREATE INDEX documents_end ON documents (ends) WHERE ends IS NOT NULL;

  CREATE TABLE entries (
    list   TEXT NOT NULL,
    member TEXT NOT NULL,
    score  INTEGER NOT NULL,
    PRIMARY KEY (list, member)
  ) WITHOUT ROWID;
  CREATE INDEX entries_order ON entries (list, score, member) WHERE score <> 0;

  -- n has no gaps: only the oldest are ever deleted, so the ring is trimmed by arithmetic.
  CREATE TABLE events (
    n     INTEGER PRIMARY KEY,
    ms    INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    event TEXT NOT NULL
  );
  CREATE UNIQUE INDEX events_position ON events (ms, seq);
`;

/**
 * Makes the tables of a new database.
 * @throws Error for one of another application, and of another version of the tables
 */
export function makeTables(db: DatabaseSync): void {
  if (hasTables(db)) return;
  db.exec('BEGIN IMMEDIATE');
  try {
    // Looked at again under the lock: another process may have made them meanwhile.
    if (!hasTables(db))
      db.exec(`${SCHEMA} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
    db.exec('COMMIT');
  } catch (thrown) {
    db.exec('ROLLBACK');
    throw thrown;
  }
}

/** @throws Error where they are not ours */
function hasTables(db: DatabaseSync): boolean {
  const tables = Number(db.prepare('SELECT count(*) AS n FROM sqlite_master').get()?.['n'] ?? 0);
  if (tables === 0) return false;
  if (pragma(db, 'application_id') !== APPLICATION_ID) throw new Error('the database belongs to another application');
  const version = pragma(db, 'user_version');
  if (version === SCHEMA_VERSION) return true;
  throw new Error(
    `the database has schema version ${version}, and this release reads ${SCHEMA_VERSION} alone: start the release that wrote it, ` +
      'or move the file away with its -wal file, and a new one is made',
  );
}

function pragma(db: DatabaseSync, name: 'user_version' | 'application_id'): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
}
