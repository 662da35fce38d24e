import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { minorUnits, minorUnitsOfNumber, unitsOf } from '../../../src/mandates/ap2/purchase.ts';
import { profileWith, purchaseWith } from '../../support/ap2/purchase.ts';

describe('minor units (ap2 7.3)', () => {
  const TEXTS: readonly (readonly [text: string, exponent: number, units: number | undefined])[] = [
    ['0.01', 6, 10_000],
    ['0.010', 2, 1],
    ['0', 0, 0],
    ['12', 0, 12],
    ['12.0', 0, 12],
    ['12.5', 0, undefined],
    ['0.001', 2, undefined],
    ['9007199254740991', 0, 9_007_199_254_740_991],
    ['9007199254740992', 0, undefined],
    ['90071992547409.92', 2, undefined],
    ['', 2, undefined],
    ['.5', 2, undefined],
    ['5.', 2, undefined],
    ['01', 2, undefined],
    ['-1', 2, undefined],
    ['+1', 2, undefined],
    ['1e2', 2, undefined],
    [' 1', 2, undefined],
  ];
  for (const [text, exponent, units] of TEXTS)
    it(`of ${JSON.stringify(text)} with ${exponent} digits: ${units}`, () =>
      assert.equal(minorUnits(text, exponent), units));

  // The first four are what int(max * 100) gets wrong in binary fractions (ap2 17).
  for (const [major, units] of [
    [0.29, 29],
    [0.57, 57],
    [4.35, 435],
    [19.99, 1_999],
    [0.001, undefined],
    [1e-7, undefined],
    [1e21, undefined],
    [-1, undefined],
    [Number.NaN, undefined],
  ] as const)
    it(`of the number ${major}: ${units}`, () => assert.equal(minorUnitsOfNumber(major, 2), units));

  it('come back from every number of cents', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e12 }), (cents) => {
        const whole = Math.floor(cents / 100);
        const text = `${whole}.${String(cents % 100).padStart(2, '0')}`;
        assert.equal(minorUnits(text, 2), cents);
        assert.equal(minorUnitsOfNumber(Number(text), 2), cents);
      }),
    );
  });

  it('are a bug for a price in a currency that the profile does not know', () => {
    for (const amount of ['1', '0.01'])
      assert.throws(() => unitsOf(purchaseWith({ price: { amount, currency: 'XAU' } }), profileWith()), /XAU/);
  });
});
