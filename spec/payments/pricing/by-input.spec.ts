import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../src/json/json.ts';
import { formatAmount, parseAmount } from '../../../src/payments/pricing/amount.ts';
import {
  type ChoiceRule,
  type InputRule,
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
      return price.kind === 'price' ? price.units : assert.fail(price.message);
    };
    fc.assert(
      fc.property(runs, ([decimals, rule, n, other]) => {
        const found = units(rule, n, decimals);
        assert.equal(found, oracle(rule, n, decimals));
        assert.ok(found >= parseAmount(rule.min, decimals) && found <= parseAmount(rule.max, decimals));
        const beside = units(rule, other, decimals);
        assert.ok(n < other ? found <= beside : beside <= found);
      }),
      { numRuns: 100_000, seed: 42 },
    );
  });
});

describe('a price by input', () => {
  const RANGED = `/n must be a number from -${MOST} to ${MOST}: the price follows it`;
  const NO_NUMBERS = {
    '/n must be a number: the price follows it': ['NaN', '7', '1e3', '', 'Infinity', true, null, [], {}],
    [RANGED]: [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e21, -1e21, MOST + 1, -MOST - 1],
  };
  const NO_CHOICES = ['LOW', '', 'toString', '__proto__', 'constructor', 0, true, null, ['low'], { low: 1 }];
  /** Values by their prices in display units, or by pointer and words of what gives none. */
  type Row = readonly [what: string, rule: InputRule, prices: Readonly<Record<string, readonly Json[]>>];
  const ROWS: readonly Row[] = [
    ['unit of a number', UNIT, NO_NUMBERS],
    [
      'unit of a text, in code points as maxLength counts',
      { ...UNIT, of: 'text' },
      {
        ...{ '0.01': ['', '\ud83d'], '0.02': ['😀😀', 'e\u0301'], '0.03': ['abc'], '1': ['😀'.repeat(200)] },
        '/n must be a text: the price follows its length': [7, ['a'], { length: 3 }, null, true],
      },
    ],
    ['unit of a list', { ...UNIT, of: 'list' }, { '0.03': [[1, [2, 3], null]] }],
    [
      'tier of a number',
      TIER,
      {
        ...{ '0.01': [-5, 0, 10], '0.05': [10.000000000000002, 100] },
        ...{ '/n must be at most 100': [100.00000000000001, MOST], ...NO_NUMBERS },
      },
    ],
    [
      'tier of a text',
      { ...TIER, of: 'text' },
      { '0.01': ['😀'.repeat(10)], '/n must be at most 100 characters': ['a'.repeat(101)] },
    ],
    [
      'tier of a list',
      { ...TIER, of: 'list' },
      {
        '/n must be at most 100 items': [[...'a'.repeat(101)]],
        '/n must be a list: the price follows its length': [7, 'abc', { length: 3 }, null, true],
      },
    ],
    [
      'choice',
      CHOICE,
      { '0.01': ['low'], '0.05': ['high'], '/n must be one of low, high: the price follows it': NO_CHOICES },
    ],
    ['choice of a boolean', { ...CHOICE, amounts: { true: '2', false: '1' } }, { '2': [true], '1': [false] }],
  ];
  for (const [what, rule, prices] of ROWS)
    for (const [price, values] of Object.entries(prices))
      it(`by ${what}: ${price}`, () => {
        for (const n of values) {
          const priced = priceOfInput(rule, { n }, 6);
          const found = priced.kind === 'price' ? formatAmount(priced.units, 6) : `${priced.pointer} ${priced.message}`;
          assert.equal(found, price, `${typeof n} ${JSON.stringify(n)}`);
        }
      });

  it('is none without its value, although the place of that has a prototype, a list or a text', () => {
    const without: readonly (readonly [JsonObject, readonly string[]])[] = [
      [{}, ['/n', '/__proto__/x', '/toString/length']],
      [{ n: 7 }, ['/n/m']],
      [{ n: [7, 2] }, ['/n/length', '/n/0']],
      [{ n: 'abc' }, ['/n/length']],
      [{ n: {} }, ['/n/__proto__']],
    ];
    const message = 'is required: the price follows it';
    for (const [input, pointers] of without)
      for (const pointer of pointers)
        for (const rule of [UNIT, TIER, CHOICE])
          assert.deepEqual(priceOfInput({ ...rule, pointer }, input, 6), { kind: 'invalid', pointer, message });
  });

  it('finds its value by the escapes of RFC 6901 alone', () => {
    const input = { 'a/b': { 'c~d': 7, 'c~1d': 9 }, a: { b: 8 } };
    for (const [pointer, units] of [
      ['/a~1b/c~0d', 70_000n],
      ['/a~1b/c~01d', 90_000n],
      ['/a/b', 80_000n],
    ] as const)
      assert.deepEqual(priceOfInput({ ...UNIT, pointer }, input, 6), { kind: 'price', units });
  });
});

describe('a quote', () => {
  const read = (answer: unknown) => quotedUnits(QUOTE, answer, 6);
  it('is read within its bounds', () => {
    for (const [amount, units] of Object.entries({ '0.01': 10_000n, '2': 2_000_000n, '1.50': 1_500_000n }))
      assert.deepEqual(read({ amount }), { kind: 'price', units });
  });

  const amounts = (...texts: readonly string[]) => texts.map((amount) => ({ amount }));
  const FAULTS: Readonly<Record<string, readonly unknown[]>> = {
    'the quote is no object with a text amount, such as { "amount": "0.01" }': [
      ...[undefined, null, '1', 1, [], ['1'], {}, { amount: 1 }, { amount: null }, { amount: ['1'] }],
      Object.create({ amount: '1' }),
    ],
    'in the quote the amount is not a decimal number such as "0.01" (digits and at most one point, no sign, no exponent)':
      amounts('', '-1', '1e0', '1,5', ' 1', '1 ', '٣', 'NaN', '0x1', '01', '+1', 'hunter2'),
    'in the quote the amount has more decimals than the asset': amounts('0.1234567'),
    'in the quote the amount is longer than 160 characters': amounts('9'.repeat(161)),
    'the quote is below pricing.by.quote.min, 0.01': amounts('0', '0.009999'),
    'the quote is above pricing.by.quote.max, 2': amounts('2.000001'),
  };
  for (const [message, answers] of Object.entries(FAULTS))
    it(`is refused where ${message}`, () => {
      for (const answer of answers) assert.deepEqual(read(answer), { kind: 'fault', message });
    });
});
