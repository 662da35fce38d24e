import type { TrimmedReceipts } from '../../receipts/receipt.ts';

/** Counts what one process drops from the book of receipts. */
export interface TrimCount {
  add(trimmed: Partial<TrimmedReceipts>): void;
  inAll(): TrimmedReceipts;
}

export function trimCount(): TrimCount {
  let [byLength, byAge] = [0, 0];
  return {
    add({ length = 0, age = 0 }) {
      byLength += length;
      byAge += age;
    },
    inAll: () => ({ length: byLength, age: byAge }),
  };
}

/**
 * Most entries that one page looks at, so that a filter which matches nothing cannot read a whole
 * ring of a million.
 */
const MAX_SCANNED = 20_000;
/** Entries fetched at once while a filter is searched for. */
const SCAN_BATCH = 500;

/**
 * One entry of a feed or a book. `item` is undefined when it was trimmed between two reads or
 * cannot be read.
 */
export interface Entry<T> {
  readonly id: string;
  readonly item: T | undefined;
}

/**
 * Newest first, strictly older than `than` when given, at most `count`; fewer mean that the end was
 * reached.
 */
export type Older<T> = (than: string | undefined, count: number) => Promise<readonly Entry<T>[]>;

interface Scan<T> {
  readonly limit: number;
  readonly cursor: string | undefined;
  /** Undefined: every entry matches. */
  readonly matches: ((item: T) => boolean) | undefined;
  /** What is read comes from an index of what matches: hardly an entry is read in vain. */
  readonly indexed?: boolean;
  /** Whether an entry, and with it everything older, lies before all that can match. */
  readonly floor?: ((id: string) => boolean) | undefined;
}

/**
 * Collects a page. `next` is present only when something older is left: a further match, or entries
 * nobody has looked at because the page ended at its bound (it may then hold fewer items than asked
 * for, even none).
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
