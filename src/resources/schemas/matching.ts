/** The tests of validators for patterns, formats, lengths and equal items: all in linear time. */

import type { Json } from '../../json/json.ts';
import { canonicalJson } from '../../json/json.ts';
import { FORMATS } from '../patterns/formats.ts';
import { linearRegExp } from '../patterns/linear.ts';
import { MAX_MATCHED_LENGTH } from './closed-objects.ts';

/**
 * A text is too long to test a pattern or format on it. Thrown, because the answer "no match"
 * would let the schema keyword `not` accept the text.
 */
export class MatchLengthError extends Error {}

/** The formats, on texts that are not too long. */
export const BOUNDED_FORMATS: Readonly<Record<string, (text: string) => boolean>> = Object.fromEntries(
  Object.entries(FORMATS).map(([name, test]) => [name, bounded(test)]),
);

function bounded(test: (text: string) => boolean): (text: string) => boolean {
  return (text) => {
    if (text.length > MAX_MATCHED_LENGTH) throw new MatchLengthError();
    return test(text);
  };
}

/** Takes no flags from the validator: the linear engine does not support `u`. */
export function boundedRegExp(pattern: string) {
  const expression = linearRegExp(pattern);
  return { test: bounded((text) => expression.test(text)), toString: () => expression.toString() };
}

/** Whether two items are equal as JSON. The original compares every pair. */
export function hasEqualItems(items: readonly Json[]): boolean {
  return new Set(items.map((item) => canonicalJson(item))).size !== items.length;
}

/** Whether a text has more than `most` characters: counted only if its length leaves it open. */
export function isLongerThan(text: string, most: number): boolean {
  return text.length > most && (text.length > 2 * most || charactersOf(text) > most);
}

/** Whether a text has fewer than `least` characters. */
export function isShorterThan(text: string, least: number): boolean {
  return text.length < least || (text.length < 2 * least && charactersOf(text) < least);
}

/** Code points, as JSON Schema counts them; each is one or two units of a text. */
function charactersOf(text: string): number {
  let characters = 0;
  for (let at = 0; at < text.length; at += 1) {
    characters += 1;
    if ((text.codePointAt(at) ?? 0) > 0xffff) at += 1;
  }
  return characters;
}
