import { MAX_PARKED_CALLS, type ParkedCalls } from '../../payments/parked-calls.ts';
import { assertParkable, isParkedName } from '../parked.ts';
import type { Database } from './database.ts';

/** Parked calls as rows. A take is one statement, so of several that ask at once one gets the row; there is no reply that could be lost. */
export function sqliteParked(database: Database): ParkedCalls {
  const { db } = database;
  const forgetEnded = db.prepare('DELETE FROM parked WHERE expires_at <= ?');
  const forget = db.prepare('DELETE FROM parked WHERE name = ?');
  const counted = db.prepare('SELECT count(*) AS n FROM parked');
  const makeRoom = db.prepare(
    'DELETE FROM parked WHERE name IN (SELECT name FROM parked ORDER BY expires_at, name LIMIT ?)',
  );
  const insert = db.prepare('INSERT INTO parked (name, expires_at, call) VALUES (?, ?, ?)');
  const take = db.prepare('DELETE FROM parked WHERE name = ? AND expires_at > ? RETURNING call');
  return {
    async park(name, call, forMs) {
      assertParkable(name, call, forMs);
      await database.write((now) => {
        forgetEnded.run(now);
        forget.run(name);
        const over = Number(counted.get()?.['n'] ?? 0) + 1 - MAX_PARKED_CALLS;
        if (over > 0) makeRoom.run(over);
        insert.run(name, now + forMs, call);
      });
    },
    async take(name) {
      if (!isParkedName(name)) return undefined;
      const row = await database.write((now) => take.get(name, now));
      return row === undefined ? undefined : String(row['call']);
    },
  };
}
