/** Opens the embedded store, for one process: its commits and its ring of events. */

import type { StatementSync } from 'node:sqlite';
import {
  type CommerceEvent,
  type EventDraft,
  type EventEntry,
  type EventFeed,
  type EventStretch,
  type EventTail,
  eventJson,
  TAIL_WAIT_MS,
} from '../../events/event.ts';
import { BEGINNING, type Entry, eventPage, parseEvent, type RingBounds, standingOf } from '../../events/page.ts';
import type { RegisterEpoch } from '../../mandates/register.ts';
import { type Store, storeOver } from '../documents/store.ts';
import type { Commit, Commits, Committed, Document, DocumentChange, Stretch } from '../port/commit.ts';
import type { StoreLimits } from '../port/settings.ts';
import { StoreError } from '../port/store-error.ts';
import { type Database, openDatabase } from './database.ts';

/**
 * `path`: a file, whose directory is created, or `:memory:`. `now`: the store's clock,
 * milliseconds. `epoch`: the start of an empty register, by default now. `log` gets a warning when
 * another process has the file.
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

/** Between two looks for events of other processes, milliseconds. */
const LOOK_EVERY_MS = 1_000;

const ID = /^evt_(\d+)-(\d+)$/;

export function sqliteFeed(database: Database): Omit<EventFeed, 'append'> {
  const { db } = database;
  const head = db.prepare('SELECT ms, seq, event FROM events ORDER BY ms DESC, seq DESC LIMIT ?');
  const below = db.prepare(
    'SELECT ms, seq, event FROM events WHERE (ms, seq) < (?, ?) ORDER BY ms DESC, seq DESC LIMIT ?',
  );
  const older = (than: string | undefined, count: number): Promise<readonly Entry<CommerceEvent>[]> =>
    database.read(() => {
      const position = than === undefined ? undefined : ID.exec(than);
      const rows =
        position === undefined || position === null
          ? head.all(count)
          : below.all(Number(position[1]), Number(position[2]), count);
      return rows.map(entryOf).map(({ id, event }) => ({ id, item: event }));
    });
  const from = db.prepare('SELECT ms, seq, event FROM events WHERE (ms, seq) >= (?, ?) ORDER BY ms, seq LIMIT ?');
  const first = db.prepare('SELECT n, ms, seq FROM events ORDER BY n LIMIT 1');
  const last = db.prepare('SELECT n, ms, seq FROM events ORDER BY n DESC LIMIT 1');
  const bounds = (): RingBounds => {
    const [oldest, newest] = [first.get(), last.get()];
    return {
      newest: newest === undefined ? BEGINNING : idOf(newest),
      oldest: oldest === undefined ? undefined : idOf(oldest),
      // Numbers begin at 1 and have no gaps.
      trimmed: oldest !== undefined && Number(oldest['n']) > 1,
    };
  };
  const after = (position: string, count: number): Promise<EventStretch> =>
    database.read(() => {
      const [, ms, seq] = ID.exec(position) ?? [];
      const found = from.all(Number(ms), Number(seq), count + 1).map(entryOf);
      if (found[0]?.id === position) return { entries: found.slice(1), standing: 'held' };
      return { entries: found.slice(0, count), standing: standingOf(position, bounds()) };
    });
  return {
    page: (query) => eventPage(query, older),
    after,
    newest: () => database.read(() => bounds().newest),
    tail: () => sqliteTail(database, after),
  };
}

/** Follows the ring: wakes at each commit of this process, and each second for those of others. */
function sqliteTail(database: Database, after: EventFeed['after']): EventTail {
  const closing = new AbortController();
  return {
    async read(position, count) {
      const deadline = performance.now() + TAIL_WAIT_MS;
      for (;;) {
        if (closing.signal.aborted) throw new StoreError(new Error('the tail is closed'), false);
        const stretch = await after(position, count);
        const leftMs = deadline - performance.now();
        if (stretch.entries.length > 0 || stretch.standing === 'ahead' || leftMs <= 0) return stretch;
        await database.nextCommit(Math.min(leftMs, LOOK_EVERY_MS), closing.signal);
      }
    },
    close: () => closing.abort(),
  };
}

/** Rows of one INSERT, which costs two thirds of as many single ones. */
const ROWS_AT_ONCE = 30;
const COLUMNS = 4;

function insertRows(rows: number): string {
  return `INSERT INTO events (n, ms, seq, event) VALUES ${Array.from({ length: rows }, () => '(?, ?, ?, ?)').join(', ')}`;
}

/** Appends inside the caller's transaction. */
type AppendEvents = (events: readonly EventDraft[], now: number) => void;

/**
 * Positions grow strictly. When the clock goes back, the millisecond of the newest position stays
 * and its sequence goes on, as in Redis streams.
 */
export function appendEvents({ db }: Database, limits: StoreLimits): AppendEvents {
  const newest = db.prepare('SELECT n, ms, seq FROM events ORDER BY n DESC LIMIT 1');
  const insert = db.prepare(insertRows(1));
  const insertMany = db.prepare(insertRows(ROWS_AT_ONCE));
  const trim = db.prepare('DELETE FROM events WHERE n <= ?');
  return (events, now) => {
    if (events.length === 0) return;
    const last = newest.get();
    let n = Number(last?.['n'] ?? 0);
    let ms = Number(last?.['ms'] ?? 0);
    let seq = Number(last?.['seq'] ?? 0);
    const columns: (number | string)[] = [];
    for (const event of events) {
      n += 1;
      seq = now > ms ? 0 : seq + 1;
      ms = Math.max(ms, now);
      columns.push(n, ms, seq, eventJson(event));
      if (columns.length < ROWS_AT_ONCE * COLUMNS) continue;
      insertMany.run(...columns);
      columns.length = 0;
    }
    for (let at = 0; at < columns.length; at += COLUMNS) insert.run(...columns.slice(at, at + COLUMNS));
    trim.run(n - limits.eventsMaxLength);
  };
}

function idOf(row: Row): string {
  return `evt_${row['ms']}-${row['seq']}`;
}

function entryOf(row: Row): EventEntry {
  const id = idOf(row);
  return { id, event: parseEvent(id, String(row['event'])) };
}
