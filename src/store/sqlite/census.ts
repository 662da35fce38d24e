/** Counts the open payments in SQLite, for the metrics. */

import { CENSUS_LIMIT, countOpen, type OpenPayment, type PaymentCensus } from '../../payments/ledger/census.ts';
import { OPEN_STATES } from '../../payments/ledger/transitions.ts';
import type { Database } from './database.ts';

/** Counts the work list. A damaged record counts as open and nothing else. @throws StoreError */
export function sqliteCensus(database: Database): () => Promise<PaymentCensus> {
  const { db } = database;
  const count = db.prepare('SELECT count(*) AS n FROM payments WHERE due_at IS NOT NULL AND expires_at > ?');
  const some = db.prepare(
    `SELECT json_extract(record, '$.state') AS state, json_extract(record, '$.leaseUntil') AS lease_until,
       coalesce(json_extract(record, '$.reason'), '') AS reason
     FROM payments WHERE due_at IS NOT NULL AND expires_at > ? AND json_valid(record) ORDER BY due_at LIMIT ${CENSUS_LIMIT}`,
  );
  return function census() {
    return database.read((now) => ({
      open: Number(count.get(now)?.['n'] ?? 0),
      ...countOpen(openPayments(some.iterate(now)), now),
    }));
  };
}

function* openPayments(rows: Iterable<Readonly<Record<string, unknown>>>): Generator<OpenPayment> {
  for (const row of rows) {
    const state = OPEN_STATES.find((open) => open === row['state']);
    if (state !== undefined) yield { state, leaseUntil: Number(row['lease_until']), reason: String(row['reason']) };
  }
}
