import type { MandateClaim, MandateRegister } from '../../mandates/register/register.ts';
import { endOfClaim, finishUses, reserveUses } from '../../mandates/register/register-table.ts';
import { assertCallName, assertClaim } from '../port/mandate-claim.ts';
import type { Database } from './database.ts';
import type { SqliteRegister } from './register.ts';

/** The register for calls that pay nothing: claims are held under the name of the call until it is known what became of it. */
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
