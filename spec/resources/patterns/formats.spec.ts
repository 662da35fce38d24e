import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fullFormats } from 'ajv-formats/dist/formats.js';
import fc from 'fast-check';
import { FORMATS, urlTest } from '../../../src/resources/patterns/formats.ts';
import { MatchBudgetError, withMatchBudget } from '../../../src/resources/patterns/linear.ts';

const RUNS = 200_000;
/** Pieces with the characters that decide. */
const PIECES = [
  ...['http://', 'FTP://', 'a', 'b.co', 'x-y.shop', '1.2.3.4', '10.0.0.1', ':', ':80', '@', '/', '?', '#', '.', '-'],
];
const SPACES = [' ', '\n', '\u3000', '\u00a0', '\u2028', '\ud83d\ude00', '\ud83d'];

describe('the format url', () => {
  const original = fullFormats.url instanceof RegExp ? fullFormats.url : assert.fail('the library has no expression');
  const isUrl = urlTest(original);

  it('has the verdict of the library’s expression', () => {
    const texts = fc
      .array(fc.constantFrom(...PIECES, ...PIECES, ...SPACES), { maxLength: 12 })
      .map((pieces) => `http://${pieces.join('')}`);
    let accepted = 0;
    fc.assert(
      fc.property(texts, (text) => {
        const verdict = original.test(text);
        if (verdict) accepted += 1;
        assert.equal(isUrl(text), verdict);
      }),
      { numRuns: RUNS },
    );
    assert.ok(accepted > RUNS / 100, `${accepted} texts were accepted`);
  });

  const host = `${'a'.repeat(247)}.co`;
  for (const [text, verdict] of [
    ['https://shop.example/path?x=@', true],
    ['shop.example', false],
    ['mailto:a@shop.example', false],
    ['http://@shop.example', false],
    ['http://a/b@shop.example/c', true],
    [`http://${'u'.repeat(3_000)}@shop.example`, true],
    [`http://shop.example/${'@:'.repeat(1_500)}`, true],
    [`http://${host}:65535`, true],
    [`http://${'a'.repeat(10)}${host}:65535`, false],
  ] as const)
    it(`${verdict ? 'accepts' : 'refuses'} ${text.slice(0, 40)}`, () => assert.equal(isUrl(text), verdict));
});

/**
 * Texts of this length take 400 ms where backtracking costs quadratic time, as in the library's
 * expression for `url`.
 */
const LENGTH = 16_384;
const LIMIT_MS = 60;
const BEGINNINGS = ['', 'http://', 'a:', 'P', '/', '#', '{', 'a@', 'http://[', 'http://a@', '::', 'a://a@'];
const PUMPS = [
  ...['a', '1', 'a.', '1.', 'a-', '1:', '@', '%41', '{x}', '-', '/', 'a@', '::', '[', '//', '/a', '~0', 'T', '1Y', '+'],
  ...[
    '\\',
    '(',
    '[\\p{L}]',
    'a|',
    'x?',
    'é',
    '\n',
    'AAAA',
    'AAAA\n',
    '?',
    '#',
    'a:',
    'a@a.',
    '{a,',
    '2020-01-01T',
    't',
  ],
];
const ENDS = ['', '!', '\n', '@', '}'];

/** Ignores the budget of a single text, which is not measured here. */
const untilSpent = (test: (text: string) => boolean, text: string): void => {
  try {
    test(text);
  } catch (error) {
    assert.ok(error instanceof MatchBudgetError);
  }
};

/**
 * The shortest of some runs. All but the first count time of this thread, which a busy machine does
 * not lengthen, and which costs more to read than the test of a text.
 */
function bestMs(call: () => void): number {
  const start = performance.now();
  call();
  let best = performance.now() - start;
  for (let run = 1; run < 8 && best > LIMIT_MS / 2; run += 1) {
    const began = process.threadCpuUsage();
    call();
    const { user, system } = process.threadCpuUsage(began);
    best = Math.min(best, (user + system) / 1_000);
  }
  return best;
}

describe('a format takes time linear in its text', () => {
  for (const [name, test] of Object.entries(FORMATS))
    it(name, () => {
      for (const beginning of BEGINNINGS)
        for (const pump of PUMPS)
          for (const end of ENDS) {
            const text = beginning + pump.repeat(LENGTH / pump.length) + end;
            const ms = bestMs(() => untilSpent(test, text));
            assert.ok(ms < LIMIT_MS, `${ms} ms for ${JSON.stringify([beginning, pump, end])}`);
          }
    });

  it('and takes it from the budget of the document', () => {
    const email = FORMATS['email'] ?? assert.fail('no such format');
    const mails = (count: number) => () => {
      for (let n = 0; n < count; n += 1) assert.ok(email('first.last@shop.example'));
    };
    withMatchBudget(mails(10_000));
    assert.throws(() => withMatchBudget(mails(1_000_000)), MatchBudgetError);
  });
});
