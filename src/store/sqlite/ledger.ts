/**
 * The ledger of payments in SQLite: reads, applies the pure table and writes in one transaction.
 */

import { finishUses, reserveUses } from '../../mandates/register/register-table.ts';
import { assertRecord, LedgerCorruption } from '../../payments/ledger/invariants.ts';
import type {
  Keeping,
  KeptAnswer,
  PaymentLedger,
  PaymentRecord,
  Refusal,
  Reserve,
} from '../../payments/ledger/ledger.ts';
import { MAX_REFUSALS, refusalEnds, SWEPT_REFUSALS, unlessRefused } from '../../payments/ledger/refusals.ts';
import {
  admitted,
  advance,
  discard,
  endedUses,
  note,
  type Outcome,
  renew,
  reserve,
} from '../../payments/ledger/table.ts';
import { expiresAt } from '../../payments/ledger/transitions.ts';
import { MOST_UNPAID } from '../../payments/ledger/unpaid.ts';
import type { Database } from './database.ts';
import type { AppendEvents } from './feed.ts';
import type { SqliteRegister } from './mandates.ts';
import type { PutReceipts } from './receipts.ts';

/** Expired rows of a table that one write deletes: an answer may have a quarter of a megabyte. */
const PURGE_BATCH = 20;

/** Writes of other tables in the transaction that changes a record. */
interface LedgerParts {
  readonly append: AppendEvents;
  readonly put: PutReceipts;
  readonly drop: (receiptId: string) => void;
  readonly register: SqliteRegister;
}

export function sqliteLedger(database: Database, { append, put, drop, register }: LedgerParts): PaymentLedger {
  const rows = paymentRows(database);
  const answers = answerRows(database);
  const refusals = refusalRows(database);
  const tokens = tokenRows(database);
  /** Applies a pure command; `and` makes the other writes if it changed the record. */
  const apply = <Answer>(
    payId: string,
    command: (record: PaymentRecord | undefined, now: number) => Outcome<Answer>,
    and: (now: number) => void = () => undefined,
  ): Promise<Answer> =>
    database.write((now) => {
      const before = rows.read(payId, now);
      const { answer, record, changed } = command(before, now);
      if (!changed) return answer;
      if (record === undefined) rows.remove(payId);
      else rows.write(record);
      const ended = endedUses(before, record);
      if (ended !== undefined) finishUses(register, ended.claim, ended.how, now);
      and(now);
      return answer;
    });
  const keep = (payId: string, keeping: Keeping | undefined, now: number): void => {
    if (keeping !== undefined) answers.keep(payId, keeping, now);
  };

  const shownFor = ({ token }: Reserve, now: number): string | undefined =>
    token?.kind === 'issued' ? tokens.shownFor(token.id, now) : undefined;
  /** The first payment that shows a token has it. */
  const noteToken = (command: Reserve, now: number): void => {
    const { terms, token } = command;
    if (token?.kind === 'issued' && shownFor(command, now) === undefined)
      tokens.note(token.id, terms.payId, now + token.forMs);
  };

  return {
    reserve: (command) =>
      apply(
        command.terms.payId,
        (record, now) => {
          const outcome = reserve(record, command, now, shownFor(command, now));
          const taken = unlessRefused(outcome, record, command, (proof) => refusals.reason(proof, now));
          const allowed = admitted(taken, record, (claim) => reserveUses(register, claim, now));
          if (allowed.changed && allowed.answer.kind === 'granted') noteToken(command, now);
          return allowed;
        },
        (now) => {
          rows.purge(now);
          answers.purge(now);
          tokens.purge(now);
          if (command.terms.mandate !== undefined) register.purge(now);
        },
      ),
    advance: (command) =>
      apply(
        command.payId,
        (record, now) => advance(record, command, now),
        (now) => {
          keep(command.payId, command.keeping, now);
          if (command.receipt !== undefined) put([command.receipt]);
          if (command.dropReceipt !== undefined) drop(command.dropReceipt);
          append(command.events, now);
        },
      ),
    note: (command) =>
      apply(
        command.payId,
        (record, now) => note(record, command, now),
        (now) => {
          keep(command.payId, command.keeping, now);
          if (command.receipt !== undefined) put([command.receipt]);
          append(command.events ?? [], now);
        },
      ),
    renew: (claim, leaseMs) => apply(claim.payId, (record, now) => renew(record, { ...claim, leaseMs }, now)),
    discard: (held, events, refusal) =>
      apply(
        held.payId,
        (record, now) => {
          const outcome = discard(record, held);
          if (refusal !== undefined && outcome.answer.kind === 'gone') refusals.put(refusal, now);
          return outcome;
        },
        (now) => append(events, now),
      ),
    read: (payId) => database.read((now) => rows.read(payId, now)),
    kept: (payId) => database.read((now) => answers.read(payId, now)),
    unpaid: (limit) => database.read((now) => rows.unpaid(now, Math.min(limit, MOST_UNPAID))),
    due: (limit, withinMs = 0) => database.read((now) => rows.due(now, limit, withinMs)),
  };
}

/** Kept answers, each readable until its own end. Writes run inside the caller's transaction. */
function answerRows({ db }: Database) {
  const select = db.prepare('SELECT status, headers, body FROM answers WHERE pay_id = ? AND expires_at > ?');
  const upsert = db.prepare(
    `INSERT INTO answers (pay_id, expires_at, status, headers, body) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (pay_id) DO UPDATE SET expires_at = excluded.expires_at, status = excluded.status,
       headers = excluded.headers, body = excluded.body`,
  );
  const prolong = db.prepare('UPDATE answers SET expires_at = ?1 WHERE pay_id = ?2 AND expires_at > ?3');
  const expired = db.prepare(
    `DELETE FROM answers WHERE rowid IN (SELECT rowid FROM answers WHERE expires_at <= ? LIMIT ${PURGE_BATCH})`,
  );
  return {
    keep(payId: string, { answer, forMs }: Keeping, now: number): void {
      if (answer === undefined) prolong.run(now + forMs, payId, now);
      else upsert.run(payId, now + forMs, answer.status, JSON.stringify(answer.headers), answer.body);
    },
    /** @throws LedgerCorruption */
    read(payId: string, now: number): KeptAnswer | undefined {
      const row = select.get(payId, now);
      if (row === undefined) return undefined;
      const { status, headers, body } = row;
      if (typeof status !== 'number' || !(body instanceof Uint8Array))
        throw new LedgerCorruption('the kept answer is none');
      return { status, headers: parseHeaders(String(headers)), body };
    },
    purge(now: number): void {
      expired.run(now);
    },
  };
}

/** @throws LedgerCorruption */
function parseHeaders(json: string): KeptAnswer['headers'] {
  try {
    return JSON.parse(json) as KeptAnswer['headers'];
  } catch {
    throw new LedgerCorruption('the headers of a kept answer are no JSON');
  }
}

/** Payment records, each readable until it expires. Writes run inside the caller's transaction. */
function paymentRows({ db }: Database) {
  const select = db.prepare('SELECT record FROM payments WHERE pay_id = ? AND expires_at > ?');
  const upsert = db.prepare(
    `INSERT INTO payments (pay_id, expires_at, due_at, record) VALUES (?, ?, ?, ?)
     ON CONFLICT (pay_id) DO UPDATE SET expires_at = excluded.expires_at, due_at = excluded.due_at, record = excluded.record`,
  );
  const remove = db.prepare('DELETE FROM payments WHERE pay_id = ?');
  const purge = db.prepare(
    `DELETE FROM payments WHERE pay_id IN (SELECT pay_id FROM payments WHERE expires_at <= ? LIMIT ${PURGE_BATCH})`,
  );
  const due = db.prepare('SELECT record FROM payments WHERE due_at <= ? AND expires_at > ? ORDER BY due_at, pay_id');
  const unpaid = db.prepare(
    'SELECT record FROM payments WHERE unpaid_at IS NOT NULL AND expires_at > ? ORDER BY unpaid_at DESC LIMIT ?',
  );
  return {
    /** @throws LedgerCorruption */
    read(payId: string, now: number): PaymentRecord | undefined {
      const row = select.get(payId, now);
      return row === undefined ? undefined : parseRecord(String(row['record']));
    },
    write(record: PaymentRecord): void {
      upsert.run(record.payId, expiresAt(record), record.dueAt === 0 ? null : record.dueAt, JSON.stringify(record));
    },
    remove(payId: string): void {
      remove.run(payId);
    },
    purge(now: number): void {
      purge.run(now);
    },
    /** Refused ones whose backend had answered, the latest first. */
    unpaid: (now: number, limit: number): readonly PaymentRecord[] =>
      unpaid.all(now, limit).flatMap(({ record }) => readableRecord(String(record)) ?? []),
    /** Skips damaged records, so that they do not stop the work on the others. */
    due(now: number, limit: number, withinMs: number): readonly PaymentRecord[] {
      const found: PaymentRecord[] = [];
      if (limit < 1) return found;
      for (const { record } of due.iterate(now + withinMs, now)) {
        const readable = readableRecord(String(record));
        if (readable !== undefined && found.push(readable) >= limit) break;
      }
      return found;
    },
  };
}

function readableRecord(json: string): PaymentRecord | undefined {
  try {
    return parseRecord(json);
  } catch (thrown) {
    if (thrown instanceof LedgerCorruption) return undefined;
    throw thrown;
  }
}

/** @throws LedgerCorruption */
function parseRecord(json: string): PaymentRecord {
  let record: unknown;
  try {
    record = JSON.parse(json);
  } catch {
    throw new LedgerCorruption('the record is no JSON');
  }
  if (typeof record !== 'object' || record === null) throw new LedgerCorruption('the record is no object');
  return assertRecord(record);
}

/** Remembered refusals, each until its own end. Writes run inside the caller's transaction. */
function refusalRows({ db }: Database) {
  const select = db.prepare('SELECT reason FROM refusals WHERE proof = ? AND expires_at > ?');
  const insert = db.prepare(
    `INSERT INTO refusals (proof, expires_at, reason) VALUES (?, ?, ?)
     ON CONFLICT (proof) DO UPDATE SET expires_at = excluded.expires_at, reason = excluded.reason
       WHERE refusals.expires_at <= ?`,
  );
  const expired = db.prepare(
    `DELETE FROM refusals WHERE proof IN (SELECT proof FROM refusals WHERE expires_at <= ? LIMIT ${SWEPT_REFUSALS})`,
  );
  const count = db.prepare('SELECT count(*) AS n FROM refusals');
  const first = db.prepare(
    'DELETE FROM refusals WHERE proof IN (SELECT proof FROM refusals ORDER BY expires_at, proof LIMIT ?)',
  );
  return {
    put(refusal: Refusal, now: number): void {
      expired.run(now);
      insert.run(refusal.proof, refusalEnds(refusal, now), refusal.reason, now);
      const over = Number(count.get()?.['n'] ?? 0) - MAX_REFUSALS;
      if (over > 0) first.run(over);
    },
    reason(proof: string, now: number): string | undefined {
      const row = select.get(proof, now);
      return row === undefined ? undefined : String(row['reason']);
    },
  };
}

/** Remembers which payment showed a token first. Writes run inside the caller's transaction. */
function tokenRows({ db }: Database) {
  const select = db.prepare('SELECT pay_id FROM buyer_tokens WHERE id = ? AND expires_at > ?');
  const upsert = db.prepare(
    `INSERT INTO buyer_tokens (id, expires_at, pay_id) VALUES (?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, pay_id = excluded.pay_id`,
  );
  const purge = db.prepare(
    `DELETE FROM buyer_tokens WHERE id IN (SELECT id FROM buyer_tokens WHERE expires_at <= ? LIMIT ${PURGE_BATCH})`,
  );
  return {
    /** The payId of that payment; undefined when none did, or the note has expired. */
    shownFor(id: string, now: number): string | undefined {
      const row = select.get(id, now);
      return row === undefined ? undefined : String(row['pay_id']);
    },
    note(id: string, payId: string, until: number): void {
      upsert.run(id, until, payId);
    },
    purge(now: number): void {
      purge.run(now);
    },
  };
}
