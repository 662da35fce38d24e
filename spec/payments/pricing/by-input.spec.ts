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

/** A decimal text as a fraction of whole numbers. */
function fraction(text: string): readonly [top: bigint, bottom: bigint] {
  const [mantissa = '', exponent = '0'] = text.split('e');
  const [whole = '', behind = ''] = mantissa.split('.');
  const power = Number(exponent) - behind.length;
  return [BigInt(whole + behind) * 10n ** BigInt(Math.max(power, 0)), 10n ** BigInt(Math.max(-power, 0))];
}

/** Big integers alone, which are divided once. */
function oracle({ amount, min, max }: UnitRule, n: number, decimals: number): bigint {
  const units = (amount: string, times = '1'): bigint => {
    const [[one, under], [other, below]] = [fraction(amount), fraction(times)];
    const [top, bottom] = [one * other * 10n ** BigInt(decimals), under * below];
    return top / bottom + (top % bottom === 0n ? 0n : 1n);
  };
  const [least, found, most] = [units(min), n <= 0 ? 0n : units(amount, JSON.stringify(n)), units(max)];
  return found < least ? least : found > most ? most : found;
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

  const exact: Readonly<Record<string, readonly number[]>> = {
    '0.01': [0.1 + 0.2, 1e-7, 5e-324, -1, -0, 0, -MOST],
    '0.011': [1.1],
    '0.07': [7],
    '0.333': [33.3],
    '0.333334': [33.33333],
    '1': [99.99999999999999, 101, MOST],
  };
  for (const [price, numbers] of Object.entries(exact))
    for (const n of numbers) it(`is ${price} for ${n}`, () => assert.equal(priced(UNIT, n), price));

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
  const steps: Readonly<Record<string, readonly number[]>> = {
    '0.01': [-5, 0, 10],
    '0.05': [10.000000000000002, 100],
    '/n must be at most 100': [100.00000000000001, MOST],
  };
  for (const [price, numbers] of Object.entries(steps))
    for (const n of numbers) it(`is ${price} for ${n}`, () => assert.equal(priced(TIER, n), price));

  it('counts texts and lists too', () => {
    assert.equal(priced({ ...TIER, of: 'text' }, '😀'.repeat(10)), '0.01');
    assert.equal(priced({ ...TIER, of: 'text' }, 'a'.repeat(101)), '/n must be at most 100 characters');
    assert.equal(priced({ ...TIER, of: 'list' }, [...'a'.repeat(101)]), '/n must be at most 100 items');
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
    const without: readonly (readonly [JsonObject, readonly string[]])[] = [
      [{}, ['/n', '/__proto__/x', '/toString/length']],
      [{ n: 7 }, ['/n/m']],
      [{ n: [7, 2] }, ['/n/length', '/n/0']],
      [{ n: 'abc' }, ['/n/length']],
      [{ n: {} }, ['/n/__proto__']],
    ];
    for (const [input, pointers] of without)
      for (const pointer of pointers)
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
    for (const [amount, units] of Object.entries({ '0.01': 10_000n, '2': 2_000_000n, '1.50': 1_500_000n }))
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
    [{ ...TIER, steps: TIER.steps.toReversed() }, '0.01', '0.05'],
    [{ ...CHOICE, amounts: { a: '10', b: '9.5', c: '0.100', d: '0.09' } }, '0.09', '10'],
  ];
  for (const [rule, lowest, highest] of rules)
    it(`are ${lowest} and ${highest} by ${rule.kind}`, () =>
      assert.deepEqual([lowestOf(rule), highestOf(rule)], [lowest, highest]));
});
