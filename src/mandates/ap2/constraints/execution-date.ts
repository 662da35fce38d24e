import { Refused } from '../model/reasons.ts';

/** A time, or the whole day that a date without a time names. Unix milliseconds, both ends belong to it. */
export interface Moment {
  readonly first: number;
  readonly last: number;
}

const DAY_MS = 86_400_000;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
/** A time without its zone could be one of 27 hours. */
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/;

/** Reads ISO 8601: a date, which is a day of UTC, or a time with its zone. @throws Refused claims_invalid */
export function readMoment(text: string): Moment {
  const day = DATE.test(text);
  const first = day || DATE_TIME.test(text) ? Date.parse(text) : Number.NaN;
  // Days that no month has are moved to the next one by the parser.
  if (Number.isNaN(first) || !isCalendarDay(text.slice(0, 10))) throw new Refused('claims_invalid');
  return { first, last: day ? first + DAY_MS - 1 : first };
}

function isCalendarDay(date: string): boolean {
  const at = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(date);
}
