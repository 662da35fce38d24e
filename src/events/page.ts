/** Collects a page of events or receipts, newest first, over any store. */

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
export type Older<T> = (than: string | undefined, count: number) => Promise<readonly Entry<T>[]>;

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
