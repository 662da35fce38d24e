import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { createContext, runInContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import {
  compilePattern,
  MATCH_BUDGET,
  MAX_STEPS,
  MatchBudgetError,
  patternFault,
  proveLinearEngine,
  spendSteps,
  withMatchBudget,
} from '../../../src/resources/patterns/linear.ts';

const MODULE = new URL('../../../src/resources/patterns/linear.ts', import.meta.url).href;

describe('a pattern is refused, with a replacement', () => {
  const ROWS: readonly (readonly [pattern: string, message: RegExp])[] = [
    ['(?=a)', /look-around: split it/],
    ['(?!a)', /look-around/],
    ['(?<=a)b', /look-around/],
    ['(?<!a)b', /look-around/],
    ['(a)\\1', /back-reference: split it/],
    ['(?<n>a)\\k<n>', /back-reference/],
    ['(?i:a)', /modifiers.*write both cases/],
    ['(?-i:a)', /modifiers/],
    ['\\p{L}+', /Unicode mode: list the characters/],
    ['[\\P{L}]', /Unicode mode/],
    ['\\u{1f600}', /Unicode mode/],
    ['[😀]', /beyond U\+FFFF/],
    ['[\\ud83d\\ude00]', /beyond U\+FFFF/],
    ['\\012', /octal escape/],
    ['\\c1', /\\c without a letter/],
    ['(', /regular expression/],
    ['a{2,1}', /regular expression/],
    ['a'.repeat(1_025), /1024 characters/],
    [`a{${MAX_STEPS + 1}}`, /takes 2,401 steps for each character, at most 2,400: shorten the counts/],
    ['(?:(?:a{100}){100}){100}', /takes 1,000,000 steps/],
    ['(?:(?:){1000}){1000}', /takes 1,000,000 steps/],
    [`(?:${'(?:'.repeat(200)}a${')?'.repeat(200)}){9}`, /takes 3,609 steps/],
  ];
  for (const [pattern, message] of ROWS)
    it(pattern.slice(0, 40), () => assert.match(patternFault(pattern) ?? 'accepted', message));
});

describe('a pattern is accepted', () => {
  const FINE = [
    ...['', '^[a-z]{1,5}$', '(a|b)+', '(a+)+', '(?<year>\\d{4})', '\\\\1', '[\\1]', '\\-', '[\\w-.]', ']{'],
    ...['(?:a|)*', '(?:^)*a', `a{${MAX_STEPS}}`, `^a{${MAX_STEPS + 1}}$`, 'a'.repeat(1_024)],
  ];
  for (const pattern of FINE) it(pattern.slice(0, 40), () => assert.equal(patternFault(pattern), undefined));
});

describe('an accepted pattern', () => {
  /** Removing groups must not change the meaning of what they separate. */
  const ROWS: readonly (readonly [pattern: string, matches: readonly string[], not: readonly string[]])[] = [
    ['^x{(?:1)}$', ['x{1}'], ['x']],
    ['^\\x4(?:1)$', ['x41'], ['A']],
    ['^\\u004(?:1)$', ['u0041'], ['A']],
    ['^\\0(?:1)$', ['\u00001'], ['\u0001']],
    ['^(?:a|b){2,3}$', ['ab', 'bba'], ['a', 'abab', '']],
    ['^(?:a{2}|b){0}c$', ['c'], ['aac']],
    ['^a{20}$', ['a'.repeat(20)], ['a'.repeat(19), 'a'.repeat(21)]],
    ['^(?:[0-9]{1,3}[.]){3}x$', ['1.22.333.x'], ['1.2.x', '1.2.3.4.x']],
    ['^a|b$', ['ax', 'xb'], ['xax']],
    ['^(?:a|b)$|^c', ['a', 'cd'], ['ad']],
  ];
  for (const [pattern, matches, not] of ROWS)
    it(`${pattern} matches as written`, () => {
      const { test } = compilePattern(pattern);
      for (const text of matches) assert.equal(test(text), true, text);
      for (const text of not) assert.equal(test(text), false, text);
    });

  it('means what the ordinary engine means: random patterns on short texts', () => {
    // The ordinary engine must not fall back to the engine that it is compared with.
    setFlagsFromString('--no-enable-experimental-regexp-engine-on-excessive-backtracks');
    const atom = fc.constantFrom(
      ...[
        'a',
        'b',
        'c',
        '.',
        '\\d',
        '\\w',
        '\\s',
        '\\W',
        '[ab]',
        '[^a]',
        '[a-c]',
        '[\\w.-]',
        '\\.',
        '\\x61',
        '\\u0062',
      ],
      ...['\\-', '{', '}', ']', '[]', '[^]', '1', '4', '\\0', '\\cA', '\\x', '\\u', '\\b', '\\B', '^', '$', ''],
    );
    const lazy = ['*?', '+?', '??'];
    const count = fc.constantFrom('*', '+', '?', ...lazy, '{2}', '{0,2}', '{1,3}', '{2,}', '{0}', '{17}', '{,2}');
    const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
      pattern: fc.oneof(
        { maxDepth: 5, withCrossShrink: true },
        atom,
        fc.tuple(tie('pattern'), tie('pattern')).map(([left, right]) => left + right),
        fc.tuple(tie('pattern'), tie('pattern')).map(([left, right]) => `(?:${left}|${right})`),
        fc.tuple(tie('pattern'), tie('pattern')).map(([left, right]) => `${left}|${right}`),
        fc.tuple(tie('pattern'), count).map(([body, quantifier]) => `(${body})${quantifier}`),
        tie('pattern').map((body) => `^${body}$`),
      ),
    }));
    const unit = fc.constantFrom(...'abc14-. {}xu]\n\0\u0001\u0004');
    const texts = fc.array(fc.string({ unit, maxLength: 8 }), { minLength: 8, maxLength: 8 });
    let compared = 0;
    let matched = 0;
    fc.assert(
      fc.property(pattern, texts, (source, tried) => {
        fc.pre(isExpression(source));
        if (patternFault(source) !== undefined) return;
        const verdicts = ordinaryVerdicts(source, tried);
        fc.pre(verdicts !== undefined);
        const { test } = compilePattern(source);
        for (const [at, text] of tried.entries()) {
          const verdict: boolean | undefined = verdicts[at];
          assert.equal(test(text), verdict, `/${source}/ on ${JSON.stringify(text)}`);
          compared += 1;
          if (verdict === true) matched += 1;
        }
      }),
      { numRuns: 20_000 },
    );
    assert.ok(compared > 100_000 && matched > 10_000 && matched < compared - 10_000, `${matched} of ${compared}`);
  });
});

const ordinary = createContext({});
const ORDINARY_MS = 250;

/** Undefined: the backtracking of the ordinary engine takes too long. */
function ordinaryVerdicts(source: string, texts: readonly string[]): readonly boolean[] | undefined {
  const asked = `${JSON.stringify(texts)}.map((text) => new RegExp(${JSON.stringify(source)}).test(text))`;
  try {
    return runInContext(asked, ordinary, { timeout: ORDINARY_MS }) as boolean[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined;
    throw error;
  }
}

function isExpression(source: string): boolean {
  try {
    return new RegExp(source) !== undefined;
  } catch {
    return false;
  }
}

describe('the linear engine', () => {
  it('is proven, in workers too', async () => {
    proveLinearEngine();
    const worker = new Worker(
      `import('${MODULE}').then(({ compilePattern }) => {
        const verdict = compilePattern('^(?:a|a)*$').test('a'.repeat(4096) + '!');
        require('node:worker_threads').parentPort.postMessage(verdict);
      })`,
      { eval: true },
    );
    assert.equal(await new Promise((resolve) => worker.once('message', resolve)), false);
    await worker.terminate();
  });

  it('is checked for before a pattern runs', () => {
    const program = `
      const { proveLinearEngine } = await import('${MODULE}');
      (await import('node:v8')).setFlagsFromString('--no-enable-experimental-regexp-engine');
      try { proveLinearEngine(); } catch (error) { console.log(error.constructor.name, error.message); }`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' });
    assert.match(
      stdout,
      /^LinearEngineMissing this Node \(v[\d.]+\) has no engine that runs patterns in linear time: use/,
    );
  });
});

describe('the budget of a document', () => {
  it('bounds one text under one pattern', () => {
    for (const pattern of ['a*b', '^(?:[a-z]|[a-z0-9]){64}', `a{${MAX_STEPS}}`, '^[ab]*[ab]{900}c$']) {
      const { cost, longest } = compilePattern(pattern);
      assert.ok(cost(longest) <= MATCH_BUDGET && cost(longest + 1) > MATCH_BUDGET, pattern);
    }
  });
  it('is not used by a text too long or too short for an anchored pattern', () => {
    const { cost, test } = compilePattern('^(?:[a-z]|[a-z0-9]){64}$');
    assert.equal(cost(4_096), 1);
    assert.equal(test('a'.repeat(4_096)), false);
    assert.ok(cost(64) > 64);
  });
  it('covers all texts of a document, and starts anew for each', () => {
    const half = MATCH_BUDGET / 2;
    for (const document of [1, 2])
      withMatchBudget(() => {
        spendSteps(half);
        spendSteps(half);
        assert.throws(() => spendSteps(1), MatchBudgetError, `document ${document}`);
      });
  });
  it('applies to each text outside of a document', () => {
    spendSteps(MATCH_BUDGET);
    assert.throws(() => spendSteps(MATCH_BUDGET + 1), MatchBudgetError);
  });
});
