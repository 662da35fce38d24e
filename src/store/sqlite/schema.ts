/** The tables of the embedded store, as steps from each version to the next. */

import type { DatabaseSync } from 'node:sqlite';

/** Written into the file, so that a foreign database is not mistaken for ours ("ACG1"). */
const APPLICATION_ID = 0x41434731;

/** Step n leads from version n to n + 1. A step that was released never changes. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE payments (
    pay_id     TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    due_at     INTEGER,
    record     TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX payments_expiry ON payments (expires_at);
  CREATE INDEX payments_due ON payments (due_at) WHERE due_at IS NOT NULL;

  -- n has no gaps: only the oldest are ever deleted, so the ring is trimmed by arithmetic.
  CREATE TABLE events (
    n     INTEGER PRIMARY KEY,
    ms    INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    event TEXT NOT NULL
  );
  CREATE UNIQUE INDEX events_position ON events (ms, seq);

  CREATE TABLE receipts (id TEXT PRIMARY KEY, receipt TEXT NOT NULL) WITHOUT ROWID;
  -- Counting the table for each receipt would read all of it.
  CREATE TABLE tally (receipts INTEGER NOT NULL);
  INSERT INTO tally VALUES (0);
  CREATE TRIGGER receipt_added AFTER INSERT ON receipts BEGIN UPDATE tally SET receipts = receipts + 1; END;
  CREATE TRIGGER receipt_dropped AFTER DELETE ON receipts BEGIN UPDATE tally SET receipts = receipts - 1; END;

  CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 1), token TEXT NOT NULL);
  `,
  // Records have `dueAt` and `evidence`. Older records get the weakest evidence that is true.
  `
  CREATE TABLE answers (
    pay_id     TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    status     INTEGER NOT NULL,
    headers    TEXT NOT NULL,
    body       BLOB NOT NULL
  );
  CREATE INDEX answers_expiry ON answers (expires_at);

  UPDATE payments SET record = CASE
    WHEN NOT json_valid(record) THEN record
    WHEN json_extract(record, '$.state') IN ('settled', 'delivered', 'undelivered', 'refundDue')
      THEN json_set(record, '$.dueAt', coalesce(due_at, 0), '$.evidence', 'claim')
    WHEN json_extract(record, '$.state') = 'refused'
      THEN json_set(record, '$.dueAt', 0, '$.evidence', 'unsent',
                    '$.reason', coalesce(json_extract(record, '$.reason'), 'settlement_refused'))
    ELSE json_set(record, '$.dueAt', coalesce(due_at, 0))
  END;
  `,
  // Calls that wait for their payment.
  `
  CREATE TABLE parked (
    name       TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    claimant   TEXT,
    call       TEXT NOT NULL
  );
  CREATE INDEX parked_expiry ON parked (expires_at);
  -- Those that wait are counted with every call that is parked.
  CREATE INDEX parked_waiting ON parked (expires_at) WHERE claimant IS NULL;
  CREATE INDEX parked_claimed ON parked (expires_at) WHERE claimant IS NOT NULL;
  `,
  // Uses of closed mandates and checkouts, states of open mandates, claims of free calls.
  `
  CREATE TABLE mandates_once (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL);
  CREATE INDEX mandates_once_expiry ON mandates_once (expires_at);
  CREATE TABLE mandates_open (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, state TEXT NOT NULL);
  CREATE INDEX mandates_open_expiry ON mandates_open (expires_at);
  CREATE TABLE mandates_held (name TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, claim TEXT NOT NULL);
  CREATE INDEX mandates_held_expiry ON mandates_held (expires_at);
  `,
  // The epoch of the register. A file that was in use has lost nothing.
  `
  CREATE TABLE mandates_epoch (id INTEGER PRIMARY KEY CHECK (id = 1), born INTEGER NOT NULL, open_from INTEGER NOT NULL);
  INSERT INTO mandates_epoch SELECT 1, 0, 0
    WHERE EXISTS (SELECT 1 FROM payments) OR EXISTS (SELECT 1 FROM events)
       OR EXISTS (SELECT 1 FROM mandates_once) OR EXISTS (SELECT 1 FROM mandates_open);
  `,
  // Records of checkout operations: of each key, and of each session.
  `
  CREATE TABLE checkouts (name TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, record TEXT NOT NULL);
  CREATE INDEX checkouts_expiry ON checkouts (expires_at);
  CREATE TABLE checkout_locks (name TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, record TEXT NOT NULL);
  CREATE INDEX checkout_locks_expiry ON checkout_locks (expires_at);
  `,
  // Receipts are found by their lists and by request, call and payment, and are counted by list,
  // because only delivered ones are trimmed. The columns are computed from the receipt, so they
  // cannot differ from it; of damaged JSON they are null or 0.
  `
  DROP TRIGGER receipt_added;
  DROP TRIGGER receipt_dropped;
  ALTER TABLE receipts ADD COLUMN delivered INTEGER
    AS (CASE WHEN json_valid(receipt) THEN coalesce(json_extract(receipt, '$.delivered'), 0) ELSE 0 END) VIRTUAL;
  ALTER TABLE receipts ADD COLUMN uncertain INTEGER
    AS (CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.delivered') = 0
      AND (coalesce(json_extract(receipt, '$.payment.status'), '') = 'unknown'
        OR coalesce(json_extract(receipt, '$.metadata.deliveryUncertain'), 0)) ELSE 0 END) VIRTUAL;
  ALTER TABLE receipts ADD COLUMN request_id TEXT
    AS (CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.requestId') END) VIRTUAL;
  ALTER TABLE receipts ADD COLUMN resumed_from TEXT
    AS (CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.metadata.resumedFrom') END) VIRTUAL;
  ALTER TABLE receipts ADD COLUMN call_id TEXT
    AS (CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.metadata.callId') END) VIRTUAL;
  ALTER TABLE receipts ADD COLUMN replay_key TEXT
    AS (CASE WHEN json_valid(receipt) THEN json_extract(receipt, '$.payment.replayKey') END) VIRTUAL;
  -- Each ends with the id, which is the key of the table, so what it finds is in order.
  CREATE INDEX receipts_delivered ON receipts (delivered);
  CREATE INDEX receipts_uncertain ON receipts (uncertain) WHERE uncertain = 1;
  CREATE INDEX receipts_request ON receipts (request_id);
  CREATE INDEX receipts_resumed ON receipts (resumed_from) WHERE resumed_from IS NOT NULL;
  CREATE INDEX receipts_call ON receipts (call_id) WHERE call_id IS NOT NULL;
  CREATE INDEX receipts_payment ON receipts (replay_key) WHERE replay_key IS NOT NULL;

  ALTER TABLE tally RENAME COLUMN receipts TO done;
  ALTER TABLE tally ADD COLUMN owed INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE tally ADD COLUMN uncertain INTEGER NOT NULL DEFAULT 0;
  -- The oldest and the newest id that were dropped for the bounds.
  ALTER TABLE tally ADD COLUMN trimmed_from TEXT;
  ALTER TABLE tally ADD COLUMN trimmed_to TEXT;
  UPDATE tally SET (done, owed, uncertain) =
    (SELECT coalesce(sum(delivered), 0), coalesce(sum(1 - delivered), 0), coalesce(sum(uncertain), 0) FROM receipts);
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
  `,
  // Owners of checkout sessions.
  `
  CREATE TABLE checkout_owners (name TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, record TEXT NOT NULL);
  CREATE INDEX checkout_owners_expiry ON checkout_owners (expires_at);
  `,
  // Proofs that the provider refused and that have no record.
  `
  CREATE TABLE refusals (proof TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, reason TEXT NOT NULL) WITHOUT ROWID;
  CREATE INDEX refusals_expiry ON refusals (expires_at);
  `,
  // Buyer's tokens: which payment showed one first, and the secret that they are derived from.
  `
  CREATE TABLE buyer_tokens (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, pay_id TEXT NOT NULL) WITHOUT ROWID;
  CREATE INDEX buyer_tokens_expiry ON buyer_tokens (expires_at);
  CREATE TABLE secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  -- Names of messages, which stood for their callers before tokens did, open nothing any more.
  UPDATE payments SET record = json_remove(record, '$.hintDigest') WHERE json_valid(record);
  `,
  // A waiting task is not stored any more, only its claims. Buyers of tasks that waited ask again.
  `
  DROP TABLE parked;
  CREATE TABLE task_claims (
    name       TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    claimant   TEXT NOT NULL,
    attempts   TEXT NOT NULL,
    kept       INTEGER NOT NULL
  );
  CREATE INDEX task_claims_expiry ON task_claims (expires_at);
  CREATE TABLE tasks_declined (name TEXT PRIMARY KEY, expires_at INTEGER NOT NULL);
  CREATE INDEX tasks_declined_expiry ON tasks_declined (expires_at);
  `,
  // Refused payments whose backend had answered: when they became so. Computed, as of receipts.
  `
  ALTER TABLE payments ADD COLUMN unpaid_at INTEGER
    AS (CASE WHEN json_valid(record) THEN CASE WHEN json_extract(record, '$.state') = 'refused'
      AND json_extract(record, '$.answered') IS NOT NULL THEN json_extract(record, '$.changedAt') END END) VIRTUAL;
  CREATE INDEX payments_unpaid ON payments (unpaid_at) WHERE unpaid_at IS NOT NULL;
  `,
];
const SCHEMA_VERSION = MIGRATIONS.length;

/** Creates or migrates the tables. @throws Error for a foreign database and for a newer version */
export function migrate(db: DatabaseSync): void {
  const version = pragma(db, 'user_version');
  const owner = pragma(db, 'application_id');
  const tables = Number(db.prepare('SELECT count(*) AS n FROM sqlite_master').get()?.['n'] ?? 0);
  if (tables > 0 && owner !== APPLICATION_ID) throw new Error('the database belongs to another application');
  if (version > SCHEMA_VERSION)
    throw new Error(`the database has schema version ${version}; this release knows ${SCHEMA_VERSION} at most`);
  if (version === SCHEMA_VERSION) return;
  db.exec('BEGIN IMMEDIATE');
  try {
    // Read again under the lock: a process that is being replaced may have migrated meanwhile.
    for (const step of MIGRATIONS.slice(pragma(db, 'user_version'))) db.exec(step);
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
  } catch (thrown) {
    db.exec('ROLLBACK');
    throw thrown;
  }
}

function pragma(db: DatabaseSync, name: 'user_version' | 'application_id'): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
}
