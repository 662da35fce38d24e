/** The tables of the embedded store. */

import type { DatabaseSync } from 'node:sqlite';

/** Written into the file, so that a foreign database is not mistaken for ours ("ACG1"). */
const APPLICATION_ID = 0x41434731;
/** Raised with every change of the tables: a gateway reads files of its own version alone. */
const SCHEMA_VERSION = 1;

const SCHEMA = `
  -- unpaid_at: when a refused payment whose backend had answered became so.
  CREATE TABLE payments (
    pay_id     TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    due_at     INTEGER,
    record     TEXT NOT NULL,
    unpaid_at  INTEGER
      AS (CASE WHEN json_valid(record) THEN CASE WHEN json_extract(record, '$.state') = 'refused'
        AND json_extract(record, '$.answered') IS NOT NULL THEN json_extract(record, '$.changedAt') END END) VIRTUAL
  ) WITHOUT ROWID;
  CREATE INDEX payments_expiry ON payments (expires_at);
  CREATE INDEX payments_due ON payments (due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX payments_unpaid ON payments (unpaid_at) WHERE unpaid_at IS NOT NULL;

  CREATE TABLE answers (
    pay_id     TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    status     INTEGER NOT NULL,
    headers    TEXT NOT NULL,
    body       BLOB NOT NULL
  );
  CREATE INDEX answers_expiry ON answers (expires_at);

  -- Proofs that the provider refused and that have no record.
  CREATE TABLE refusals (proof TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, reason TEXT NOT NULL) WITHOUT ROWID;
  CREATE INDEX refusals_expiry ON refusals (expires_at);

  -- Buyer's tokens: which payment showed one first, and the secret that they are derived from.
  CREATE TABLE buyer_tokens (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, pay_id TEXT NOT NULL) WITHOUT ROWID;
  CREATE INDEX buyer_tokens_expiry ON buyer_tokens (expires_at);
  CREATE TABLE secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

  -- n has no gaps: only the oldest are ever deleted, so the ring is trimmed by arithmetic.
  CREATE TABLE events (
    n     INTEGER PRIMARY KEY,
    ms    INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    event TEXT NOT NULL
  );
  CREATE UNIQUE INDEX events_position ON events (ms, seq);

  -- Receipts are found by their lists and by request, call and payment. The columns are computed from
  -- the receipt, so they cannot differ from it; of damaged JSON they are null or 0.
  CREATE TABLE receipts (
    id           TEXT PRIMARY KEY,
    receipt      TEXT NOT NULL,
    delivered    INTEGER
      AS (CASE WHEN json_valid(receipt) THEN coalesce(json_extract(receipt, '$.delivered'), 0) ELSE 0 END) VIRTUAL,
    uncertain    INTEGER
      AS (CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.delivered') = 0
        AND (coalesce(json_extract(receipt, '$.payment.status'), '') = 'unknown'
          OR coalesce(json_extract(receipt, '$.metadata.deliveryUncertain'), 0)) ELSE 0 END) VIRTUAL,
    request_id   TEXT AS (CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.requestId') END) VIRTUAL,
    resumed_from TEXT AS (CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.metadata.resumedFrom') END) VIRTUAL,
    call_id      TEXT AS (CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.metadata.callId') END) VIRTUAL,
    replay_key   TEXT AS (CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.payment.replayKey') END) VIRTUAL
  ) WITHOUT ROWID;
  -- Each ends with the id, which is the key of the table, so what it finds is in order.
  CREATE INDEX receipts_delivered ON receipts (delivered);
  CREATE INDEX receipts_uncertain ON receipts (uncertain) WHERE uncertain = 1;
  CREATE INDEX receipts_request ON receipts (request_id);
  CREATE INDEX receipts_resumed ON receipts (resumed_from) WHERE resumed_from IS NOT NULL;
  CREATE INDEX receipts_call ON receipts (call_id) WHERE call_id IS NOT NULL;
  CREATE INDEX receipts_payment ON receipts (replay_key) WHERE replay_key IS NOT NULL;

  -- One row: counting the table for each receipt would read all of it. By list, because only delivered
  -- receipts are trimmed; and the oldest and the newest id that were dropped for the bounds.
  CREATE TABLE tally (
    done         INTEGER NOT NULL,
    owed         INTEGER NOT NULL,
    uncertain    INTEGER NOT NULL,
    trimmed_from TEXT,
    trimmed_to   TEXT
  );
  INSERT INTO tally VALUES (0, 0, 0, NULL, NULL);
  CREATE TRIGGER receipt_added AFTER INSERT ON receipts BEGIN
    UPDATE tally SET done = done + NEW.delivered, owed = owed + 1 - NEW.delivered, uncertain = uncertain + NEW.uncertain;
  END;
  CREATE TRIGGER receipt_changed AFTER UPDATE ON receipts
    WHEN NEW.delivered <> OLD.delivered OR NEW.uncertain <> OLD.uncertain BEGIN
    UPDATE tally SET done = done + NEW.delivered - OLD.delivered,
      owed = owed + OLD.delivered - NEW.delivered, uncertain = uncertain + NEW.uncertain - OLD.uncertain;
  END;
  CREATE TRIGGER receipt_dropped AFTER DELETE ON receipts BEGIN
    UPDATE tally SET done = done - OLD.delivered, owed = owed - 1 + OLD.delivered, uncertain = uncertain - OLD.uncertain;
  END;

  -- Uses of closed mandates and checkouts, states of open mandates, claims of free calls, and the epoch
  -- of the register.
  CREATE TABLE mandates_once (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL);
  CREATE INDEX mandates_once_expiry ON mandates_once (expires_at);
  CREATE TABLE mandates_open (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, state TEXT NOT NULL);
  CREATE INDEX mandates_open_expiry ON mandates_open (expires_at);
  CREATE TABLE mandates_held (name TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, claim TEXT NOT NULL);
  CREATE INDEX mandates_held_expiry ON mandates_held (expires_at);
  CREATE TABLE mandates_epoch (id INTEGER PRIMARY KEY CHECK (id = 1), born INTEGER NOT NULL, open_from INTEGER NOT NULL);

  -- Records of checkout operations: of each key, of each session, and the owners of sessions.
  CREATE TABLE checkouts (name TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, record TEXT NOT NULL);
  CREATE INDEX checkouts_expiry ON checkouts (expires_at);
  CREATE TABLE checkout_locks (name TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, record TEXT NOT NULL);
  CREATE INDEX checkout_locks_expiry ON checkout_locks (expires_at);
  CREATE TABLE checkout_owners (name TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, record TEXT NOT NULL);
  CREATE INDEX checkout_owners_expiry ON checkout_owners (expires_at);

  CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 1), token TEXT NOT NULL);
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
