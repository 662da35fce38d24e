/** Compares positions of the ring of events; an event id is its position. */

import type { Standing } from './event.ts';

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
