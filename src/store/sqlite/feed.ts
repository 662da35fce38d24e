import type { CommerceEvent, EventDraft, EventFeed } from '../../events/event.ts';
import { eventJson, eventPage, parseEvent } from '../event-json.ts';
import type { Entry } from '../page.ts';
import type { StoreLimits } from '../store.ts';
import type { Database } from './database.ts';

const ID = /^evt_(\d+)-(\d+)$/;

/** Appends inside a transaction that somebody else opened. */
export type AppendEvents = (events: readonly EventDraft[], now: number) => void;

/**
 * Positions grow strictly, also when the clock goes back: then the newest position's millisecond is kept and its sequence goes on,
 * the rule that Redis streams follow.
 */
export function appendEvents({ db }: Database, limits: StoreLimits): AppendEvents {
  const newest = db.prepare('SELECT n, ms, seq FROM events ORDER BY n DESC LIMIT 1');
  const insert = db.prepare('INSERT INTO events (n, ms, seq, event) VALUES (?, ?, ?, ?)');
  const trim = db.prepare('DELETE FROM events WHERE n <= ?');
  return (events, now) => {
    if (events.length === 0) return;
    const last = newest.get();
    let n = Number(last?.['n'] ?? 0);
    let ms = Number(last?.['ms'] ?? 0);
    let seq = Number(last?.['seq'] ?? 0);
    for (const event of events) {
      n += 1;
      seq = now > ms ? 0 : seq + 1;
      ms = Math.max(ms, now);
      insert.run(n, ms, seq, eventJson(event));
    }
    trim.run(n - limits.eventsMaxLength);
  };
}

export function sqliteFeed(database: Database, append: AppendEvents): EventFeed {
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
      return rows.map((row) => {
        const id = `evt_${row['ms']}-${row['seq']}`;
        return { id, item: parseEvent(id, String(row['event'])) };
      });
    });
  return {
    append: (events) => database.write((now) => append(events, now)),
    page: (query) => eventPage(query, older),
  };
}
