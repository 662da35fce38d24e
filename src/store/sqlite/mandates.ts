/** The register of mandates in SQLite. */

import type { MandateClaim, MandateRegister } from '../../mandates/register/register.ts';
import {
  endOfClaim,
  finishUses,
  type OpenMandateState,
  type RegisterRows,
  reserveUses,
  SWEPT_AT_ONCE,
} from '../../mandates/register/register-table.ts';
import { assertCallName, assertClaim } from '../port/mandate-claim.ts';
import type { Database } from './database.ts';

/** For calls that pay nothing: claims are held under the name of the call until it has ended. */
export function sqliteMandates(database: Database, register: SqliteRegister): MandateRegister {
  const { db } = database;
  const find = db.prepare('SELECT claim FROM mandates_held WHERE name = ? AND expires_at > ?');
  const hold = db.prepare(
    `INSERT INTO mandates_held (name, expires_at, claim) VALUES (?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at, claim = excluded.claim`,
  );
  const drop = db.prepare('DELETE FROM mandates_held WHERE name = ?');
  return {
    async reserve(name, claim) {
      assertCallName(name);
      assertClaim(claim);
      return database.write((now) => {
        if (find.get(name, now) !== undefined) return { kind: 'reserved' };
        const reason = reserveUses(register, claim, now);
        if (reason !== undefined) return { kind: 'refused', reason };
        register.purge(now);
        hold.run(name, endOfClaim(claim, now), JSON.stringify(claim));
        return { kind: 'reserved' };
      });
    },
    async finish(name, how) {
      assertCallName(name);
      await database.write((now) => {
        const held = find.get(name, now);
        if (held === undefined) return;
        finishUses(register, JSON.parse(String(held['claim'])) as MandateClaim, how, now);
        drop.run(name);
      });
    },
  };
}

/** The register as rows; all of it runs inside the caller's transaction. */
export interface SqliteRegister extends RegisterRows {
  /** Deletes some rows that ended; called with each reservation. */
  purge(now: number): void;
}

export function registerRows({ db }: Database): SqliteRegister {
  const usedUntil = db.prepare('SELECT expires_at FROM mandates_once WHERE id = ?');
  const use = db.prepare(
    `INSERT INTO mandates_once (id, expires_at) VALUES (?, ?)
     ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at`,
  );
  const free = db.prepare('DELETE FROM mandates_once WHERE id = ?');
  const open = db.prepare('SELECT state FROM mandates_open WHERE id = ?');
  const write = db.prepare(
    `INSERT INTO mandates_open (id, expires_at, state) VALUES (?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, state = excluded.state`,
  );
  const remove = db.prepare('DELETE FROM mandates_open WHERE id = ?');
  const epoch = db.prepare('SELECT born, open_from FROM mandates_epoch');
  const begin = db.prepare('INSERT INTO mandates_epoch (id, born, open_from) VALUES (1, ?, ?) ON CONFLICT DO NOTHING');
  const purges = ['once', 'open', 'held'].map((name) =>
    db.prepare(
      `DELETE FROM mandates_${name} WHERE rowid IN
         (SELECT rowid FROM mandates_${name} WHERE expires_at <= ? LIMIT ${SWEPT_AT_ONCE})`,
    ),
  );
  return {
    usedUntil(id) {
      const row = usedUntil.get(id);
      return row === undefined ? undefined : Number(row['expires_at']);
    },
    use: (id, untilMs) => void use.run(id, untilMs),
    free: (id) => void free.run(id),
    open(id) {
      const row = open.get(id);
      return row === undefined ? undefined : (JSON.parse(String(row['state'])) as OpenMandateState);
    },
    write: (id, state) => void write.run(id, state.ends, JSON.stringify(state)),
    remove: (id) => void remove.run(id),
    epoch() {
      const row = epoch.get();
      return row === undefined ? undefined : { born: Number(row['born']), openFrom: Number(row['open_from']) };
    },
    begin: ({ born, openFrom }) => void begin.run(born, openFrom),
    purge(now) {
      for (const purge of purges) purge.run(now);
    },
  };
}
