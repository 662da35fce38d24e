import type { Format } from 'ajv';
import { fullFormats } from 'ajv-formats/dist/formats.js';
import { spendSteps } from './budget.ts';
import { urlTest } from './url-format.ts';

type TextTest = (text: string) => boolean;

/** Steps of a format for each character; a step is about 10 ns. */
const STEPS: Readonly<Record<string, number>> = { regex: 60, url: 20, 'date-time': 20, 'iso-date-time': 20 };
const ORDINARY_STEPS = 4;

/**
 * The text formats of JSON Schema as the validator's library has them, in time linear in the text. Their expressions need the flag `i` or
 * look ahead, which the linear engine refuses; but all of them read a text in one way only, so that going back costs no more than going on:
 * spec/resources/patterns/formats.spec.ts drives each to twice the length and expects twice the time. `url` is the exception, and replaced.
 * What a text costs is taken from the budget of its document.
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

/** Undefined: a format of numbers. */
function textTest(format: Format): TextTest | undefined {
  if (format === true) return () => true;
  if (format instanceof RegExp) return (text) => format.test(text);
  if (typeof format === 'function') return format as TextTest;
  if (typeof format !== 'object' || format.type === 'number') return undefined;
  const { validate } = format;
  if (validate instanceof RegExp) return (text) => validate.test(text);
  return typeof validate === 'function' ? (validate as TextTest) : undefined;
}
