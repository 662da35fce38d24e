import type { Json, JsonObject } from '../../../json/types.ts';
import { Refused } from './reasons.ts';

/** 9999-12-31T23:59:59Z in unix seconds: a time in milliseconds is beyond it (ap2 9). */
export const LAST_TIME = 253_402_300_799;

const TIMES: readonly string[] = ['iat', 'nbf', 'exp'];

/** Whether a claim is a time: whole unix seconds up to the year 9999. */
export function isTime(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= LAST_TIME;
}

/**
 * Checks the times of tokens and of the mandates in them (ap2 7.6, step 8; ap2 9); `now` and `skew` in seconds, `skew` once a
 * comparison. Returns the earliest `exp`, or infinity.
 * @throws Refused
 */
export function checkTimes(documents: readonly JsonObject[], now: number, skew: number): number {
  for (const document of documents)
    for (const name of TIMES)
      if (document[name] !== undefined && !isTime(document[name])) throw new Refused('claims_invalid');
  const ends = earliestEnd(documents);
  // RFC 7519, section 4.1.4: "on or after".
  if (now >= ends + skew) throw new Refused('expired');
  for (const { nbf, iat } of documents)
    for (const begins of [nbf, iat]) if (isTime(begins) && begins > now + skew) throw new Refused('not_yet_valid');
  return ends;
}

/** The earliest `exp`, unix seconds, or infinity. */
export function earliestEnd(documents: readonly JsonObject[]): number {
  return documents.reduce((ends, { exp }) => (isTime(exp) ? Math.min(ends, exp) : ends), Number.POSITIVE_INFINITY);
}
