/** Opens the embedded store, for one process: the commits of one turn are one transaction. */

import type { StatementSync } from 'node:sqlite';
import type { RegisterEpoch } from '../../mandates/register.ts';
import type { Store } from '../documents/store.ts';
import { storeOver } from '../documents/store-over.ts';
import type { Commit, Commits, Committed, Document, DocumentChange, Stretch } from '../port/commit.ts';
import type { StoreLimits } from '../port/settings.ts';
import { type Database, openDatabase } from './database.ts';
import { type AppendEvents, appendEvents, sqliteFeed } from './feed.ts';

/**
 * `path`: a file, whose directory is created, or `:memory:`. `now`: the store's clock,
 * milliseconds. `epoch`: what an empty register begins with, by default now. `log` hears of another
 * process that has the file.
 * @throws Error when the file cannot be used, is not ours, or is of another release
 */
export function openSqliteStore(options: {
  readonly path: string;
  readonly limits: StoreLimits;
  readonly now?: () => number;
  readonly epoch?: RegisterEpoch;
  readonly log?: { warn(fields: object, message: string): void } | undefined;
}): Store {
  const { path, limits, now = Date.now, log, epoch } = options;
  const warn =
    log && (() => log.warn({ path }, 'another process has this database open; several gateways need storage.redis'));
  const database = openDatabase(path, now, warn);
  const store = storeOver(
    {
      name: 'sqlite',
      commits: sqliteCommits(database, now, appendEvents(database, limits)),
      feed: sqliteFeed(database),
      giveBack: database.giveBack,
      close: async () => database.close(),
    },
    limits,
    { epoch, log, unanswered: 'unwritable' },
  );
  // The epoch begins before the first checkout is issued.
  void store.check();
  return store;
}

/** Documents past their end that one commit deletes: more than it adds. */
const PURGED_AT_ONCE = 20;

type Row = Readonly<Record<string, unknown>>;

/** `now`: the store's clock, milliseconds. */
export function sqliteCommits(database: Database, now: () => number, append: AppendEvents): Commits {
  const { db } = database;
  const select = db.prepare('SELECT version, value FROM documents WHERE key = ? AND (ends IS NULL OR ends > ?)');
  const version = db.prepare('SELECT version FROM documents WHERE key = ? AND (ends IS NULL OR ends > ?)');
  const upsert = db.prepare(
    `INSERT INTO documents (key, version, ends, value) VALUES (?, ?, ?, ?)
     ON CONFLICT (key) DO UPDATE SET version = excluded.version, ends = excluded.ends, value = excluded.value`,
  );
  const prolong = db.prepare('UPDATE documents SET ends = ? WHERE key = ? AND (ends IS NULL OR ends > ?)');
  const remove = db.prepare('DELETE FROM documents WHERE key = ?');
  const purge = db.prepare(
    `DELETE FROM documents WHERE key IN (SELECT key FROM documents WHERE ends <= ? LIMIT ${PURGED_AT_ONCE})`,
  );
  const enter = db.prepare(
    `INSERT INTO entries (list, member, score) VALUES (?, ?, ?)
     ON CONFLICT (list, member) DO UPDATE SET score = excluded.score WHERE score <> excluded.score`,
  );
  const leave = db.prepare('DELETE FROM entries WHERE list = ? AND member = ?');
  const count = db.prepare('SELECT count(*) AS n FROM entries WHERE list = ?');
  const stretches = new Map<string, StatementSync>();

  const documentAt = (key: string, at: number): Document | undefined => {
    const row: Row | undefined = select.get(key, at);
    return row && { version: String(row['version']), value: String(row['value']) };
  };
  const write = ({ key, version = '', value, endMs }: DocumentChange, at: number): void => {
    if (value === null) remove.run(key);
    else if (value !== undefined) upsert.run(key, version, endMs ?? null, value);
    else if (endMs !== undefined) prolong.run(endMs, key, at);
  };
  const make = ({ documents, entries = [], events = [], notBefore = 0 }: Commit, at: number): Committed => {
    if (at < notBefore) return { kind: 'early' };
    const expected = documents.filter(({ expect }) => expect !== undefined);
    if (expected.some(({ key, expect }) => expect !== (version.get(key, at)?.['version'] ?? null)))
      return { kind: 'conflict', documents: new Map(expected.map(({ key }) => [key, documentAt(key, at)])) };
    for (const change of documents) write(change, at);
    for (const { list, member, score } of entries)
      if (score === undefined) leave.run(list, member);
      else enter.run(list, member, score);
    append(events, at);
    purge.run(at);
    return { kind: 'done' };
  };
  const statement = ({ by, above, below, latest }: Stretch): StatementSync => {
    const [more, less] = by === 'score' ? ['>=', '<='] : ['>', '<'];
    const order = latest ? 'DESC' : 'ASC';
    const sql = `SELECT member FROM entries WHERE list = ?${by === 'score' ? ' AND score <> 0' : ''}${above === undefined ? '' : ` AND ${by} ${more} ?`}${
      below === undefined ? '' : ` AND ${by} ${less} ?`
    } ORDER BY ${by === 'score' ? `score ${order}, ` : ''}member ${order} LIMIT ? OFFSET ?`;
    const known = stretches.get(sql) ?? db.prepare(sql);
    stretches.set(sql, known);
    return known;
  };
  return {
    now,
    commit: (commit) => database.write((at) => make(commit, at)),
    read: (keys) => database.read((at) => new Map(keys.map((key) => [key, documentAt(key, at)]))),
    bytes: (key) =>
      database.read((at) => {
        const value = select.get(key, at)?.['value'];
        return value instanceof Uint8Array ? value : undefined;
      }),
    members: (list, stretch) =>
      database.read(() => {
        const bounds = [stretch.above, stretch.below].filter((bound) => bound !== undefined);
        const rows = statement(stretch).all(list, ...bounds, stretch.limit, stretch.offset ?? 0);
        return rows.map(({ member }) => String(member));
      }),
    size: (list) => database.read(() => Number(count.get(list)?.['n'] ?? 0)),
  };
}
