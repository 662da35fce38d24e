import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { CartLine } from '../../../../src/mandates/ap2/checkout/checkout-claims.ts';
import {
  assignable,
  MAX_REQUIREMENTS,
  type Requirement,
} from '../../../../src/mandates/ap2/constraints/checkout-constraints.ts';
import { Refused } from '../../../../src/mandates/ap2/model/reasons.ts';

function wants(items: string, quantity = 1): Requirement {
  return { acceptable: new Set(items), quantity };
}

function cart(...lines: readonly (readonly [itemId: string, quantity: number])[]): readonly CartLine[] {
  return lines.map(([itemId, quantity]) => ({ itemId, quantity }));
}

/** Tries every way of giving single pieces to single wishes. */
function possible(requirements: readonly Requirement[], lines: readonly CartLine[]): boolean {
  const pieces = lines.flatMap(({ itemId, quantity }) => Array.from({ length: quantity }, () => itemId));
  const wishes = requirements.flatMap(({ acceptable, quantity }) => Array.from({ length: quantity }, () => acceptable));
  if (pieces.length !== wishes.length) return false;
  const tryFrom = (index: number, left: readonly string[]): boolean =>
    index === wishes.length ||
    left.some((piece, at) => wishes[index]?.has(piece) === true && tryFrom(index + 1, left.toSpliced(at, 1)));
  return tryFrom(0, pieces);
}

describe('line items (ap2 2.2)', () => {
  const CASES: readonly (readonly [string, readonly Requirement[], readonly CartLine[], boolean])[] = [
    ['the one that is wanted', [wants('a')], cart(['a', 1]), true],
    ['one of two that would do', [wants('ab')], cart(['b', 1]), true],
    ['another one', [wants('a')], cart(['b', 1]), false],
    ['nothing acceptable', [wants('')], cart(['a', 1]), false],
    ['one too few', [wants('a', 2)], cart(['a', 1]), false],
    ['one too many', [wants('a')], cart(['a', 2]), false],
    ['one that nobody asked for', [wants('a')], cart(['a', 1], ['b', 1]), false],
    ['one piece for two wishes', [wants('a'), wants('a')], cart(['a', 1]), false],
    ['two pieces for two wishes', [wants('a'), wants('a')], cart(['a', 2]), true],
    ['two pieces on two lines', [wants('a', 2)], cart(['a', 1], ['a', 1]), true],
    // The first wish must give up the piece that the second one needs.
    ['pieces that have to be given otherwise', [wants('ab'), wants('a')], cart(['a', 1], ['b', 1]), true],
    ['pieces that no order helps', [wants('ab'), wants('ab')], cart(['a', 1], ['c', 1]), false],
    ['an empty cart', [wants('a')], [], false],
  ];
  for (const [what, requirements, lines, fits] of CASES)
    it(`${fits ? 'fit' : 'do not fit'}: ${what}`, () => assert.equal(assignable(requirements, lines), fits));

  it('fit exactly where some way of giving every piece to one wish exists', () => {
    const wish = fc.record({
      acceptable: fc.subarray(['a', 'b', 'c']).map((items) => new Set(items)),
      quantity: fc.integer({ min: 1, max: 2 }),
    });
    const line = fc.record({ itemId: fc.constantFrom('a', 'b', 'c'), quantity: fc.integer({ min: 1, max: 2 }) });
    const both = fc.tuple(fc.array(wish, { minLength: 1, maxLength: 3 }), fc.array(line, { maxLength: 4 }));
    fc.assert(
      fc.property(both, ([requirements, lines]) =>
        assert.equal(assignable(requirements, lines), possible(requirements, lines)),
      ),
      { numRuns: 3_000 },
    );
  });

  it('are not looked for in a cart of more lines than requirements may have', () => {
    const lines = (count: number) => cart(...Array.from({ length: count }, () => ['a', 1] as const));
    assert.equal(assignable([wants('a', MAX_REQUIREMENTS)], lines(MAX_REQUIREMENTS)), true);
    assert.throws(
      () => assignable([wants('a', MAX_REQUIREMENTS + 1)], lines(MAX_REQUIREMENTS + 1)),
      (thrown) => thrown instanceof Refused && thrown.reason === 'constraint_unresolved',
    );
    // What does not add up needs no looking for.
    assert.equal(assignable([wants('a', MAX_REQUIREMENTS)], lines(MAX_REQUIREMENTS + 1)), false);
  });

  it('are decided at once where every requirement could have every line', () => {
    const items = 'abcdefghijklmnopqrstuvwxyz';
    const requirements = Array.from({ length: MAX_REQUIREMENTS }, () => wants(items, 1_000));
    const lines = Array.from({ length: MAX_REQUIREMENTS }, (_, at) => ({
      itemId: items.charAt(at % 26),
      quantity: 1_000,
    }));
    assert.equal(assignable(requirements, lines), true);
  });
});
