import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../src/json/json.ts';
import { formatAmount, parseAmount } from '../../../src/payments/pricing/amount.ts';
import {
  type ChoiceRule,
  highestOf,
  type InputRule,
  lowestOf,
  type PriceRule,
  priceOfInput,
  type QuoteRule,
  quotedUnits,
  type TierRule,
  type UnitRule,
} from '../../../src/payments/pricing/by-input.ts';

const MOST = Number.MAX_SAFE_INTEGER;
const UNIT: UnitRule = { kind: 'unit', pointer: '/n', amount: '0.01', min: '0.01', max: '1', of: 'number' };
const TIER: TierRule = {
  ...{ kind: 'tier', pointer: '/n', of: 'number' },
  steps: [
    { upTo: 10, amount: '0.01' },
    { upTo: 100, amount: '0.05' },
  ],
};
const CHOICE: ChoiceRule = { kind: 'choice', pointer: '/n', amounts: { low: '0.01', high: '0.05' } };
const QUOTE: QuoteRule = { kind: 'quote', method: 'POST', path: '/price', min: '0.01', max: '2' };

/** The price in display units; or the pointer and the words of what gives none. */
function priced(rule: InputRule, n: Json | undefined, decimals = 6): string {
  const priced = priceOfInput(rule, n === undefined ? {} : { n }, decimals);
  return priced.kind === 'price' ? formatAmount(priced.units, decimals) : `${priced.pointer} ${priced.message}`;
}

/** An oracle without a number beyond one digit: decimal texts, multiplied as on paper. */
interface Decimal {
  readonly digits: string;
  /** Digits behind the point; negative: zeros before it. */
  readonly scale: number;
}

function decimal(text: string): Decimal {
  const [mantissa = '', exponent = '0'] = text.split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return { digits: whole + fraction, scale: fraction.length - Number(exponent) };
}

function product(one: string, other: string): string {
  const sums = Array.from({ length: one.length + other.length }, () => 0);
  for (let i = one.length - 1; i >= 0; i -= 1)
    for (let j = other.length - 1; j >= 0; j -= 1) {
      const sum = Number(one[i]) * Number(other[j]) + (sums[i + j + 1] ?? 0);
      sums[i + j + 1] = sum % 10;
      sums[i + j] = (sums[i + j] ?? 0) + Math.floor(sum / 10);
    }
  return sums.join('');
}

function plusOne(digits: string): string {
  const nines = /9*$/.exec(digits)?.[0].length ?? 0;
  const head = digits.slice(0, digits.length - nines).padStart(1, '0');
  return head.slice(0, -1) + (Number(head.at(-1)) + 1) + '0'.repeat(nines);
}

/** The digits of the base units, rounded up. */
function baseUnits({ digits, scale }: Decimal, decimals: number): string {
  const behind = scale - decimals;
  if (behind <= 0) return digits + '0'.repeat(-behind);
  const padded = digits.padStart(behind + 1, '0');
  const whole = padded.slice(0, -behind);
  return /[1-9]/.test(padded.slice(-behind)) ? plusOne(whole) : whole;
}

/** Compares digits. */
function isLess(one: string, other: string): boolean {
  const length = Math.max(one.length, other.length);
  return one.padStart(length, '0') < other.padStart(length, '0');
}

function oracle({ amount, min, max }: UnitRule, n: number, decimals: number): bigint {
  const [least, most] = [min, max].map((text) => baseUnits(decimal(text), decimals));
  assert.ok(least !== undefined && most !== undefined);
  if (n <= 0) return BigInt(least);
  const [one, other] = [decimal(amount), decimal(JSON.stringify(n))];
  const units = baseUnits({ digits: product(one.digits, other.digits), scale: one.scale + other.scale }, decimals);
  return BigInt(isLess(units, least) ? least : isLess(most, units) ? most : units);
}

const DECIMALS = fc.constantFrom(0, 2, 6, 8, 18);
const NUMBERS = fc.oneof(
  fc.integer({ min: -5, max: 1_000 }),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, min: -MOST, max: MOST }),
  fc.tuple(fc.integer({ min: 0, max: 10 ** 9 }), fc.integer({ min: 0, max: 12 })).map(([n, e]) => n / 10 ** e),
  fc.constantFrom(0.1 + 0.2, 1e-7, 5e-324, -0, 1 / 3, 2 ** -1074, MOST, 0.1, 1.1, 1e15 + 0.3),
);

/** Rules that an asset of the decimals can hold. */
function unitRules(decimals: number): fc.Arbitrary<UnitRule> {
  const amounts = fc.bigInt({ min: 1n, max: 10n ** 20n });
  return fc.tuple(amounts, amounts, amounts).map(([each, one, other]) => ({
    ...{ ...UNIT, amount: formatAmount(each % 10n ** 9n || each, decimals) },
    min: formatAmount(one < other ? one : other, decimals),
    max: formatAmount(one < other ? other : one, decimals),
  }));
}

describe('a price by unit', () => {
  it('is exact for 100,000 random rules and numbers, within bounds, and never falls', () => {
    const runs = DECIMALS.chain((decimals) => fc.tuple(fc.constant(decimals), unitRules(decimals), NUMBERS, NUMBERS));
    const units = (rule: UnitRule, n: number, decimals: number): bigint => {
      const price = priceOfInput(rule, { n }, decimals);
      assert.ok(price.kind === 'price');
      return price.units;
    };
    fc.assert(
      fc.property(runs, ([decimals, rule, n, other]) => {
        const found = units(rule, n, decimals);
        assert.equal(found, oracle(rule, n, decimals));
        assert.ok(found >= parseAmount(rule.min, decimals) && found <= parseAmount(rule.max, decimals));
        const [less, more] = n < other ? [n, other] : [other, n];
        assert.ok(units(rule, less, decimals) <= units(rule, more, decimals));
      }),
      { numRuns: 100_000, seed: 42 },
    );
  });

  const exact: readonly (readonly [number, string])[] = [
    [7, '0.07'],
    [0.1 + 0.2, '0.01'],
    [33.3, '0.333'],
    [33.33333, '0.333334'],
    [1.1, '0.011'],
    [99.99999999999999, '1'],
    [1e-7, '0.01'],
    [5e-324, '0.01'],
    [-1, '0.01'],
    [-0, '0.01'],
    [0, '0.01'],
    [101, '1'],
    [MOST, '1'],
    [-MOST, '0.01'],
  ];
  for (const [n, price] of exact) it(`is ${price} for ${n}`, () => assert.equal(priced(UNIT, n), price));

  it('rounds up once, at the end', () => {
    const rule = { ...UNIT, amount: '0.000003', min: '0.000001', max: '1' };
    assert.deepEqual(
      [0.1, 0.4, 1.1].map((n) => priced(rule, n)),
      ['0.000001', '0.000002', '0.000004'],
    );
    assert.equal(priced(rule, 0.4, 18), '0.0000012');
  });

  it('counts code points of a text, as maxLength does, and items of a list', () => {
    const text = { ...UNIT, of: 'text' } as const;
    assert.deepEqual(
      ['', 'abc', '😀😀', 'e\u0301', '\ud83d'].map((n) => priced(text, n)),
      [...['0.01', '0.03', '0.02', '0.02', '0.01']],
    );
    assert.equal(priced(text, '😀'.repeat(200)), '1');
    assert.equal(priced({ ...UNIT, of: 'list' }, [1, [2, 3], null]), '0.03');
  });
});

describe('a price by tier', () => {
  const steps: readonly (readonly [number, string])[] = [
    ...([
      [-5, '0.01'],
      [0, '0.01'],
      [10, '0.01'],
      [10.000000000000002, '0.05'],
      [100, '0.05'],
    ] as const),
    [100.00000000000001, '/n must be at most 100'],
    [MOST, '/n must be at most 100'],
  ];
  for (const [n, price] of steps) it(`is ${price} for ${n}`, () => assert.equal(priced(TIER, n), price));

  it('counts texts and lists too', () => {
    assert.equal(priced({ ...TIER, of: 'text' }, '😀'.repeat(10)), '0.01');
    assert.equal(priced({ ...TIER, of: 'text' }, 'a'.repeat(101)), '/n must be at most 100 characters');
    assert.equal(
      priced(
        { ...TIER, of: 'list' },
        Array.from({ length: 101 }, () => 0),
      ),
      '/n must be at most 100 items',
    );
  });
});

describe('a price by choice', () => {
  it('is that of the text, or of the boolean', () => {
    const flag: ChoiceRule = { ...CHOICE, amounts: { true: '2', false: '1' } };
    assert.deepEqual([priced(CHOICE, 'low'), priced(CHOICE, 'high')], ['0.01', '0.05']);
    assert.deepEqual([priced(flag, true), priced(flag, false)], ['2', '1']);
  });
  for (const value of ['LOW', '', 'toString', '__proto__', 'constructor', 0, true, null, ['low'], { low: 1 }])
    it(`is refused for ${JSON.stringify(value)}`, () =>
      assert.equal(priced(CHOICE, value), '/n must be one of low, high: the price follows it'));
});

describe('a value that gives no price', () => {
  const wrong: readonly Json[] = [
    ...['NaN', '7', '1e3', '', 'Infinity', true, null, [], {}, Number.NaN, Number.POSITIVE_INFINITY],
    ...[Number.NEGATIVE_INFINITY, 1e21, -1e21, MOST + 1, -MOST - 1],
  ];
  for (const rule of [UNIT, TIER])
    for (const value of wrong)
      it(`is ${typeof value} ${String(value)} where a ${rule.kind} is of a number`, () =>
        assert.match(priced(rule, value), /^\/n must be a number/));

  it('is another type where the length of a text or a list counts', () => {
    for (const value of [7, ['a'], { length: 3 }, null, true])
      assert.match(priced({ ...UNIT, of: 'text' }, value), /^\/n must be a text/);
    for (const value of [7, 'abc', { length: 3 }, null, true])
      assert.match(priced({ ...TIER, of: 'list' }, value), /^\/n must be a list/);
  });

  it('is not there, although its place has a prototype, a list or a text', () => {
    const inputs: readonly (readonly [string, JsonObject])[] = [
      ...([
        ['/n', {}],
        ['/n/m', { n: 7 }],
        ['/n/length', { n: [1, 2] }],
        ['/n/0', { n: [7] }],
      ] as const),
      ...([
        ['/n/length', { n: 'abc' }],
        ['/__proto__/x', {}],
        ['/toString/length', {}],
        ['/n/__proto__', { n: {} }],
      ] as const),
    ];
    for (const [pointer, input] of inputs)
      for (const rule of [UNIT, TIER, CHOICE])
        assert.deepEqual(priceOfInput({ ...rule, pointer }, input, 6), {
          ...{ kind: 'invalid', pointer, message: 'is required: the price follows it' },
        });
  });

  it('is found by the escapes of RFC 6901 alone', () => {
    const input = { 'a/b': { 'c~d': 7, 'c~1d': 9 }, a: { b: 8 } };
    const at = (pointer: string) => priceOfInput({ ...UNIT, pointer }, input, 6);
    assert.deepEqual(at('/a~1b/c~0d'), { kind: 'price', units: 70_000n });
    assert.deepEqual(at('/a~1b/c~01d'), { kind: 'price', units: 90_000n });
    assert.deepEqual(at('/a/b'), { kind: 'price', units: 80_000n });
  });
});

describe('a quote', () => {
  const read = (answer: unknown) => quotedUnits(QUOTE, answer, 6);
  it('is read within its bounds', () => {
    for (const [amount, units] of [
      ['0.01', 10_000n],
      ['2', 2_000_000n],
      ['1.50', 1_500_000n],
    ] as const)
      assert.deepEqual(read({ amount }), { kind: 'price', units });
  });

  const faults: readonly (readonly [unknown, RegExp])[] = [
    ...[undefined, null, '1', 1, [], ['1'], {}, { amount: 1 }, { amount: null }, { amount: ['1'] }].map(
      (answer) => [answer, /^the quote is no object with a text amount/] as const,
    ),
    [Object.create({ amount: '1' }), /^the quote is no object/],
    ...['', '-1', '1e0', '1,5', ' 1', '1 ', '٣', 'NaN', '0x1', '01', '+1'].map(
      (amount) => [{ amount }, /^in the quote the amount is not a decimal number/] as const,
    ),
    [{ amount: '0.1234567' }, /^in the quote the amount has more decimals than the asset/],
    [{ amount: '9'.repeat(161) }, /^in the quote the amount is longer/],
    [{ amount: '0' }, /^the quote is below pricing\.by\.quote\.min, 0\.01$/],
    [{ amount: '0.009999' }, /^the quote is below pricing\.by\.quote\.min, 0\.01$/],
    [{ amount: '2.000001' }, /^the quote is above pricing\.by\.quote\.max, 2$/],
  ];
  for (const [answer, fault] of faults)
    it(`is refused as ${JSON.stringify(answer)?.slice(0, 30)}`, () => {
      const found = read(answer);
      assert.ok(found.kind === 'fault');
      assert.match(found.message, fault);
    });

  it('is told of without a word of its own', () => {
    const found = read({ amount: 'hunter2', hunter2: 'hunter2' });
    assert.ok(found.kind === 'fault' && !found.message.includes('hunter2'));
  });
});

describe('the bounds of a rule', () => {
  const rules: readonly (readonly [PriceRule, string, string])[] = [
    [UNIT, '0.01', '1'],
    [QUOTE, '0.01', '2'],
    [TIER, '0.01', '0.05'],
    [{ ...CHOICE, amounts: { a: '10', b: '9.5', c: '0.100', d: '0.09' } }, '0.09', '10'],
    [
      {
        ...TIER,
        steps: [
          { upTo: 1, amount: '3' },
          { upTo: 2, amount: '1.25' },
        ],
      },
      '1.25',
      '3',
    ],
  ];
  for (const [rule, lowest, highest] of rules)
    it(`are ${lowest} and ${highest} by ${rule.kind}`, () =>
      assert.deepEqual([lowestOf(rule), highestOf(rule)], [lowest, highest]));
});
