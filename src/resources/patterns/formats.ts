/** The text formats of JSON Schema, each with a cost that is linear in the text. */

import type { Format } from 'ajv';
import { fullFormats } from 'ajv-formats/dist/formats.js';
import { spendSteps } from './linear.ts';

const SCHEME = /^(?:https?|ftp):\/\//i;
const SPACE = /\s/;
/** Longest host with its port, characters: the longest name of the DNS, and ":65535". */
const MAX_HOST = 253 + 6;

type TextTest = (text: string) => boolean;

/** Steps of a format for each character; a step takes about 10 ns. */
const STEPS: Readonly<Record<string, number>> = { regex: 60, url: 20, 'date-time': 20, 'iso-date-time': 20 };
const ORDINARY_STEPS = 4;

/**
 * The formats of the library. Their expressions need the flag `i` or look-ahead, which the linear
 * engine refuses; but all except `url`, which is replaced, read a text in one way only, so that
 * backtracking is linear too: spec/resources/patterns/formats.spec.ts doubles the length of texts
 * and expects twice the time. The steps of a text are taken from the budget of its document.
 */
export const FORMATS: Readonly<Record<string, TextTest>> = Object.fromEntries(
  Object.entries<Format>(fullFormats).flatMap(([name, format]): readonly (readonly [string, TextTest])[] => {
    const test = textTest(format);
    if (test === undefined) return [];
    const bounded = name === 'url' && format instanceof RegExp ? urlTest(format) : test;
    const steps = STEPS[name] ?? ORDINARY_STEPS;
    return [
      [
        name,
        (text) => {
          spendSteps(steps * (text.length + 1));
          return bounded(text);
        },
      ],
    ];
  }),
);

/** Undefined for a format of numbers. */
function textTest(format: Format): TextTest | undefined {
  if (format === true) return () => true;
  if (format instanceof RegExp) return (text) => format.test(text);
  if (typeof format === 'function') return format as TextTest;
  if (typeof format !== 'object' || format.type === 'number') return undefined;
  const { validate } = format;
  if (validate instanceof RegExp) return (text) => validate.test(text);
  return typeof validate === 'function' ? (validate as TextTest) : undefined;
}

/**
 * Gives the verdict of the library's expression for `url`, in linear time. That expression tries
 * every combination of colons and @ as the end of user and password: 50 ms for 4,096 characters.
 * But the @ after them is the last one before the next slash, so only these positions are tried,
 * each with the host that follows it. A host longer than the DNS allows is refused.
 */
export function urlTest(original: RegExp): (text: string) => boolean {
  return function isUrl(text) {
    const scheme = SCHEME.exec(text)?.[0];
    if (scheme === undefined) return false;
    const start = scheme.length;
    const firstSpace = indexOrEnd(text.slice(start).search(SPACE), text.length - start) + start;
    const lastSpace = lastSpaceOf(text);
    for (let from = start; from <= text.length; ) {
      const end = indexOrEnd(text.indexOf('/', from), text.length);
      // In the slice only: a search of the whole text at every slash would be quadratic.
      const at = text.slice(from, end).lastIndexOf('@');
      const host = from + at + 1;
      const userIsSound = host === start || (host > start + 1 && host - 1 <= firstSpace);
      const follows = host === start || at >= 0;
      if (follows && userIsSound && lastSpace < end && end - host <= MAX_HOST)
        if (original.test(scheme + text.slice(host, end))) return true;
      from = end + 1;
    }
    return false;
  };
}

function indexOrEnd(index: number, end: number): number {
  return index === -1 ? end : index;
}

function lastSpaceOf(text: string): number {
  for (let at = text.length - 1; at >= 0; at -= 1) if (SPACE.test(text.charAt(at))) return at;
  return -1;
}
