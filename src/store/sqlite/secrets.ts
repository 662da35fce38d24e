import type { SharedSecrets } from '../../payments/pricing/token-keys.ts';
import type { Database } from './database.ts';

/** Shared values as rows: a file has one process at a time, and its successor finds what it wrote. */
export function sqliteSecrets(database: Database): SharedSecrets {
  const insert = database.db.prepare('INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING');
  const select = database.db.prepare('SELECT value FROM secrets WHERE name = ?');
  return {
    agree: (name, candidate) =>
      database.write(() => {
        insert.run(name, candidate);
        return String(select.get(name)?.['value']);
      }),
  };
}
