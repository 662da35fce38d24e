/** Reads the words, numbers and times that options give. */

import { nearest } from '../problems/nearest.ts';
import { UsageError } from './exit-code.ts';

const ISO_8601 = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;
const AGO = /^(\d{1,6})(m|h|d)$/;
const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A whole number. @throws UsageError that names the option */
export function wholeNumber(text: string, option: string, least: number, most: number): number {
  const read = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(read >= least && read <= most)) throw new UsageError(`--${option} must be a number from ${least} to ${most}`);
  return read;
}

/** ISO 8601 in milliseconds, without a time of day midnight UTC; undefined for any other text. */
export function isoMilliseconds(text: string): number | undefined {
  const read = ISO_8601.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(read) ? undefined : read;
}

/** ISO 8601, or how long ago: 30m, 12h, 7d. Milliseconds. @throws UsageError */
export function pastMoment(text: string, option: string, nowMs: number): number {
  const [, count, unit = ''] = AGO.exec(text) ?? [];
  const read = count === undefined ? isoMilliseconds(text) : nowMs - Number(count) * (UNIT_MS[unit] ?? 0);
  if (read !== undefined) return read;
  throw new UsageError(`--${option} must be a time ago such as 30m, 12h or 7d, or ISO 8601 such as 2026-01-31`);
}

/** One of a closed list of words. @throws UsageError that names the likely one, else all */
export function oneOf(text: string, option: string, words: readonly string[]): string {
  if (words.includes(text)) return text;
  const meant = nearest(text, words);
  throw new UsageError(
    meant === undefined
      ? `--${option} must be one of ${words.join(', ')}`
      : `--${option} has no ${text}; did you mean ${meant}?`,
  );
}
