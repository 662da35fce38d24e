const DAY_SECONDS = 86_400;

/** How often a mandate may be used (ap2 2.2). */
export const FREQUENCIES = ['ON_DEMAND', 'DAILY', 'WEEKLY', 'BIWEEKLY', 'MONTHLY', 'QUARTERLY', 'ANNUALLY'] as const;
export type Frequency = (typeof FREQUENCIES)[number];

/** 1970-01-01 was a Thursday; weeks, and blocks of two, are counted from the Monday before it, 1969-12-29. */
const MONDAY_BEFORE = -3;

/**
 * When the calendar period of UTC began that `now` lies in, unix seconds; undefined where uses need not be apart (ap2 7.3). Periods are of
 * the calendar and do not roll: a monthly use may be on the 31st and then on the 1st.
 */
export function periodStart(frequency: Frequency, now: number): number | undefined {
  const at = new Date(now * 1_000);
  const year = at.getUTCFullYear();
  const month = at.getUTCMonth();
  switch (frequency) {
    case 'ON_DEMAND':
      return undefined;
    case 'DAILY':
      return blockStart(now, 1, 0);
    case 'WEEKLY':
      return blockStart(now, 7, MONDAY_BEFORE);
    case 'BIWEEKLY':
      return blockStart(now, 14, MONDAY_BEFORE);
    case 'MONTHLY':
      return Date.UTC(year, month) / 1_000;
    case 'QUARTERLY':
      return Date.UTC(year, month - (month % 3)) / 1_000;
    case 'ANNUALLY':
      return Date.UTC(year, 0) / 1_000;
  }
}

/** Of blocks of so many days, one of which begins with day `anchor` (0 is 1970-01-01). */
function blockStart(now: number, days: number, anchor: number): number {
  const day = Math.floor(now / DAY_SECONDS);
  return (Math.floor((day - anchor) / days) * days + anchor) * DAY_SECONDS;
}
