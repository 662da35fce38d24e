/** The ring of events: positions, stored JSON, and pages, newest first, over any store. */

import type { CommerceEvent, EventDraft, EventPage, EventQuery, Standing } from './event.ts';
import { calledAtMs } from './event.ts';

/** Most entries that one page reads: a filter without matches must not read a ring of a million. */
const MAX_SCANNED = 20_000;
/** Entries that are read at once while a filter is searched for. */
const SCAN_BATCH = 500;

/** One entry. `item` is undefined when it was trimmed between two reads or cannot be read. */
export interface Entry<T> {
  readonly id: string;
  readonly item: T | undefined;
}

/** Reads newest first, older than `than`; fewer than `count` mean that the end is reached. */
type Older<T> = (than: string | undefined, count: number) => Promise<readonly Entry<T>[]>;

interface Scan<T> {
  readonly limit: number;
  readonly cursor: string | undefined;
  /** Undefined: every entry matches. */
  readonly matches: ((item: T) => boolean) | undefined;
  /** The entries come from an index, so nearly all of them match. */
  readonly indexed?: boolean;
  /** Whether an entry, and with it everything older, lies before all that can match. */
  readonly floor?: ((id: string) => boolean) | undefined;
}

/**
 * Collects a page. `next` is present when something older is left: a further match, or entries that
 * were not read because of `MAX_SCANNED`. Such a page may hold fewer items than `limit`, even none.
 */
export async function scanPage<T>(
  scan: Scan<T>,
  older: Older<T>,
): Promise<{ readonly items: readonly T[]; readonly next: string | undefined }> {
  const { limit, matches, indexed = false, floor } = scan;
  let batch = matches === undefined || indexed ? limit + 1 : SCAN_BATCH;
  const items: T[] = [];
  let position = scan.cursor;
  let last: string | undefined;
  for (let scanned = 0; scanned < MAX_SCANNED; ) {
    const entries = await older(position, batch);
    scanned += batch;
    for (const { id, item } of entries) {
      if (floor?.(id) === true) return { items, next: undefined };
      position = id;
      if (item === undefined || matches?.(item) === false) continue;
      if (items.length === limit) return { items, next: last };
      items.push(item);
      last = id;
    }
    if (entries.length < batch) return { items, next: undefined };
    batch = Math.max(batch, SCAN_BATCH);
  }
  return { items, next: position };
}

/** A predicate over the fields that a query names; undefined when it names none. */
export function sameFields<T extends object>(
  wanted: Readonly<Partial<Record<keyof T, unknown>>>,
): ((item: T) => boolean) | undefined {
  const fields = Object.entries(wanted).filter(([, value]) => value !== undefined);
  if (fields.length === 0) return undefined;
  return (item) => fields.every(([name, value]) => item[name as keyof T] === value);
}

/** The shape of an event id, checked before a caller's one reaches a store. */
export const EVENT_ID = /^evt_\d{1,16}-\d{1,10}$/;

/** The position before every event. */
export const BEGINNING = 'evt_0-0';

/** The ends of a ring at one moment, as positions. */
export interface RingBounds {
  /** The newest entry ever; `BEGINNING` before the first. */
  readonly newest: string;
  /** The oldest entry that is left; undefined when none is. */
  readonly oldest: string | undefined;
  /** Whether entries were dropped. */
  readonly trimmed: boolean;
}

/** Negative when `a` is before `b`. Compares digits as text: a number may not hold all of them. */
export function comparePositions(a: string, b: string): number {
  const [aMs, aSeq] = parts(a);
  const [bMs, bSeq] = parts(b);
  return compareDigits(aMs, bMs) || compareDigits(aSeq, bSeq);
}

/** Drops leading zeros, which a caller may write: a store compares ids as text. */
export function canonicalPosition(id: string): string {
  return `evt_${parts(id).join('-')}`;
}

/** How a position that is no entry of the ring stands to it. */
export function standingOf(position: string, { newest, oldest, trimmed }: RingBounds): Standing {
  if (comparePositions(position, newest) > 0) return 'ahead';
  return trimmed && comparePositions(position, oldest ?? newest) < 0 ? 'dropped' : 'unknown';
}

/** Milliseconds and sequence, without leading zeros. */
function parts(id: string): readonly [ms: string, seq: string] {
  const [ms = '', seq = ''] = id.slice('evt_'.length).split('-');
  return [withoutZeros(ms), withoutZeros(seq)];
}

function withoutZeros(digits: string): string {
  return digits.replace(/^0+(?=\d)/, '');
}

function compareDigits(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : Number(a > b);
}

/** How far the clocks of a gateway and of its store may differ, milliseconds. */
const MAX_CLOCK_DIFFERENCE_MS = 10 * 60 * 1_000;

/** Undefined for a damaged entry, so that it does not close the whole feed. */
export function parseEvent(id: string, json: string): CommerceEvent | undefined {
  try {
    return { id, ...(JSON.parse(json) as EventDraft) };
  } catch {
    return undefined;
  }
}

/** A page of the feed. A search by call id ends 10 minutes before the call came in. */
export async function eventPage(query: EventQuery, older: Older<CommerceEvent>): Promise<EventPage> {
  const { limit, cursor, requestId, callId, resourceId, type } = query;
  const matches = sameFields<CommerceEvent>({ requestId, callId, resourceId, type });
  const floor = callId === undefined ? undefined : eventFloor(callId);
  const { items, next } = await scanPage({ limit, cursor, matches, floor }, older);
  return { events: items, ...(next === undefined ? {} : { nextCursor: next }) };
}

/** Whether an event is older than every event that this call can have. */
function eventFloor(callId: string): (id: string) => boolean {
  const floor = `evt_${Math.max(0, calledAtMs(callId) - MAX_CLOCK_DIFFERENCE_MS)}-0`;
  return (id) => comparePositions(id, floor) < 0;
}
