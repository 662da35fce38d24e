/** The ring of events in SQLite, with positions by the rule of Redis streams. */

import {
  type CommerceEvent,
  type EventDraft,
  type EventEntry,
  type EventFeed,
  type EventStretch,
  type EventTail,
  TAIL_WAIT_MS,
} from '../../events/event.ts';
import {
  BEGINNING,
  type Entry,
  eventJson,
  eventPage,
  parseEvent,
  type RingBounds,
  standingOf,
} from '../../events/page.ts';
import type { StoreLimits } from '../port/settings.ts';
import { StoreError } from '../port/store-error.ts';
import type { Database } from './database.ts';

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

/** Follows the ring: woken by every commit of this process. */
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

/** Rows that one statement adds: two thirds of the cost of as many statements. */
const ROWS_AT_ONCE = 30;
const COLUMNS = 4;

function insertRows(rows: number): string {
  return `INSERT INTO events (n, ms, seq, event) VALUES ${Array.from({ length: rows }, () => '(?, ?, ?, ?)').join(', ')}`;
}

/** Appends inside the caller's transaction. */
export type AppendEvents = (events: readonly EventDraft[], now: number) => void;

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

type Row = Readonly<Record<string, unknown>>;

function idOf(row: Row): string {
  return `evt_${row['ms']}-${row['seq']}`;
}

function entryOf(row: Row): EventEntry {
  const id = idOf(row);
  return { id, event: parseEvent(id, String(row['event'])) };
}
