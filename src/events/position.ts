import type { Standing } from './event.ts';

/** The shape of an event id, checked before one of a caller reaches a store. */
export const EVENT_ID = /^evt_\d{1,16}-\d{1,10}$/;

/** The position before every event. */
export const BEGINNING = 'evt_0-0';

/** What a ring holds, seen at one moment. */
export interface RingBounds {
  /** Of the newest entry there ever was; `BEGINNING` before the first. */
  readonly newest: string;
  /** Of the oldest entry that is left; undefined when none is. */
  readonly oldest: string | undefined;
  /** Whether entries were dropped. */
  readonly trimmed: boolean;
}

/**
 * Negative when `a` is before `b`. Digits are compared as text: they may be more than a number
 * holds exactly.
 */
export function comparePositions(a: string, b: string): number {
  const [aMs, aSeq] = parts(a);
  const [bMs, bSeq] = parts(b);
  return compareDigits(aMs, bMs) || compareDigits(aSeq, bSeq);
}

/**
 * The one spelling of a position: a caller may write leading zeros, and a store compares ids as
 * text.
 */
export function canonicalPosition(id: string): string {
  return `evt_${parts(id).join('-')}`;
}

/** How a ring with these bounds stands to a position that is none of its entries. */
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
