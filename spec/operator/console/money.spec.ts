import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  commonDecimals,
  decimal,
  digits,
  inDigits,
  larger,
  percent,
  plus,
  roundUp,
  whole,
  ZERO,
} from '../../../src/operator/console/receipts.js';

function sum(amounts: readonly string[]): string {
  return inDigits(amounts.map((text) => decimal(text) ?? ZERO).reduce(plus, ZERO), 0);
}

describe('exact sums of amounts', () => {
  for (const { amounts, total } of [
    { amounts: [], total: '0' },
    { amounts: ['0.1', '0.2'], total: '0.3' },
    { amounts: ['0.01', '0.005', '0.985'], total: '1' },
    { amounts: ['9007199254740993', '0.000000000000000001'], total: '9 007 199 254 740 993.000000000000000001' },
    { amounts: Array.from({ length: 1_000 }, () => '0.001'), total: '1' },
  ])
    it(`${amounts.length} amounts make ${total}`, () => assert.equal(sum(amounts), total.replaceAll(' ', '\u202f')));

  it('agree with integers of the smallest unit, whatever the amounts', () => {
    const amount = fc.tuple(fc.bigInt(0n, 10n ** 30n), fc.integer({ min: 0, max: 36 }));
    fc.assert(
      fc.property(fc.array(amount), (amounts) => {
        const total = amounts
          .map(([whole, scale]) => decimal(`${whole}.${'7'.repeat(scale + 1).slice(1) || '0'}`))
          .map((value) => value ?? assert.fail('an amount'))
          .reduce(plus, ZERO);
        const atoms = amounts.reduce(
          (units, [whole, scale]) => units + BigInt(`${whole}${'7'.repeat(scale).padEnd(36, '0')}`),
          0n,
        );
        assert.equal(total.units * 10n ** BigInt(36 - total.scale), atoms);
      }),
    );
  });

  for (const text of [
    '',
    '1,5',
    '-1',
    '1e3',
    '0x10',
    ' 1',
    '1.',
    '.5',
    'NaN',
    '1'.repeat(61),
    `0.${'1'.repeat(37)}`,
    5,
  ])
    it(`${JSON.stringify(text).slice(0, 20)} is no amount`, () => assert.equal(decimal(text), undefined));

  it('the longest amount is one', () => {
    const longest = `${'9'.repeat(60)}.${'9'.repeat(36)}`;
    assert.equal(inDigits(decimal(longest) ?? ZERO, 0).replaceAll('\u202f', ''), longest);
  });
});

describe('amounts as they are shown', () => {
  for (const { text, decimals, shown } of [
    { text: '0', decimals: 2, shown: '0.00' },
    { text: '0.01', decimals: 2, shown: '0.01' },
    { text: '0.010', decimals: 2, shown: '0.01' },
    { text: '0.005', decimals: 2, shown: '0.005' },
    { text: '0.01', decimals: 3, shown: '0.010' },
    { text: '1234567.5', decimals: 2, shown: '1 234 567.50' },
    { text: '1000', decimals: 0, shown: '1 000' },
    { text: '999.999', decimals: 0, shown: '999.999' },
  ])
    it(`${text} with ${decimals} decimals is ${shown}: never rounded`, () =>
      assert.equal(inDigits(decimal(text) ?? ZERO, decimals), shown.replace(/ /g, '\u202f')));

  it('a column has as many decimals as its longest amount, at least two', () => {
    const of = (...texts: readonly string[]) => commonDecimals(texts.map((text) => decimal(text) ?? ZERO));
    assert.deepEqual([of(), of('1', '0.5'), of('0.02', '0.001'), of('0.02000')], [2, 2, 3, 2]);
  });
});

describe('amounts in a chart', () => {
  const of = (text: string) => decimal(text) ?? assert.fail(text);

  for (const [amount, round] of [
    ['0', '0'],
    ['0.001', '0.001'],
    ['0.0011', '0.002'],
    ['2', '2'],
    ['3', '4'],
    ['4.000000000000000001', '6'],
    ['81', '100'],
    ['9007199254740993', '10000000000000000'],
  ] as const)
    it(`${amount} is below a top of ${round}`, () => assert.equal(digits(roundUp(of(amount))), round));

  it('are a part of the top in percent, however many digits they have', () => {
    assert.deepEqual(
      [
        percent(of('1'), of('3')),
        percent(of('0.000000000000000001'), of('0.000000000000000004')),
        percent(of('9007199254740993'), of('9007199254740993.0')),
        percent(whole(0), of('5')),
        percent(ZERO, ZERO),
      ],
      [33.33, 25, 100, 0, 0],
    );
  });

  it('are compared as numbers, not as digits', () => {
    assert.equal(digits(larger(of('0.9'), of('0.10'))), '0.9');
    assert.equal(digits(larger(of('2'), of('10.000'))), '10');
  });
});
