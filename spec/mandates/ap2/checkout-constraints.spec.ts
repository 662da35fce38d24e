import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Json, JsonObject } from '../../../src/json/json.ts';
import type { CartLine } from '../../../src/mandates/ap2/checkout.ts';
import { assignable, MAX_REQUIREMENTS, type Requirement } from '../../../src/mandates/ap2/checkout-constraints.ts';
import { Refused } from '../../../src/mandates/ap2/reasons.ts';
import { allowedMerchants, type Constraint, lineItems, plain } from '../../../tools/mandate/maker/constraints.ts';
import { withDisclosureTexts, withMandate } from '../../support/ap2/hands.ts';
import { createMint } from '../../support/ap2/mint.ts';
import { MERCHANT } from '../../support/ap2/purchase.ts';
import { verifierFor } from '../../support/ap2/verifier.ts';
import { type Row, rows, withCheckoutClaims } from './cases.ts';

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
      { numRuns: 20_000 },
    );
  });

  it('are not looked for in a cart of more lines than requirements may have', () => {
    const lines = (count: number) => cart(...Array.from({ length: count }, () => ['a', 1] as const));
    assert.equal(assignable([wants('a', MAX_REQUIREMENTS)], lines(MAX_REQUIREMENTS)), true);
    assert.throws(
      () => assignable([wants('a', MAX_REQUIREMENTS + 1)], lines(MAX_REQUIREMENTS + 1)),
      (thrown) => thrown instanceof Refused && thrown.reason === 'constraint_unresolved',
    );
    // An impossible total needs no search.
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

const mint = createMint();
const verify = verifierFor(mint);
const REPORT = { id: 'market_report', title: 'Market report' };
const WANTED = lineItems([{ id: 'line_1', acceptable: [REPORT], quantity: 1 }]);

function under(...constraints: readonly Constraint[]): () => string {
  return () => mint.autonomous({ constraints }).header;
}

/** With the right line items, and this besides. */
function and(body: JsonObject): () => string {
  return under(WANTED, plain(body));
}

/** The right requirement with other members. */
function wanted(changes: JsonObject, ...more: readonly JsonObject[]): () => string {
  const requirement = { id: 'line_1', acceptable_items: [REPORT], quantity: 1, ...changes };
  return under(plain({ type: 'checkout.line_items', items: [requirement, ...more] }));
}

function items(value: Json): () => string {
  return under(plain({ type: 'checkout.line_items', items: value }));
}

function merchants(allowed: Json): () => string {
  return and({ type: 'checkout.allowed_merchants', allowed });
}

const many = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ id: `${at}`, acceptable_items: [], quantity: 1 }));

describe('the constraints of open checkout mandates (ap2 7.6, step 13)', () => {
  rows(verify, 'checkout', [
    ['the merchant and the item', under(WANTED, allowedMerchants([MERCHANT])), 'accepted'],
    ['the item alone', under(WANTED), 'accepted'],
    [
      'one of several merchants',
      under(WANTED, allowedMerchants([{ id: 'other', name: 'Other' }, MERCHANT])),
      'accepted',
    ],
    ['our id under another name', merchants([{ id: MERCHANT.id, name: 'Other' }]), 'accepted'],
    ['another merchant of our name and site', merchants([{ ...MERCHANT, id: 'other' }]), 'constraint_violated'],
    ['no merchant at all', merchants([]), 'constraint_violated'],
    ['a merchant of our name and site with an empty id', merchants([{ ...MERCHANT, id: '' }]), 'constraint_violated'],
    ['one beside us', merchants([{ id: '', name: 'x' }, MERCHANT]), 'accepted'],
    ['merchants that are all withheld', () => withheld(allowedMerchants([MERCHANT])), 'constraint_violated'],
    ['items that are all withheld', () => withheld(), 'constraint_violated'],
    ['another item', wanted({ acceptable_items: [{ id: 'other', title: 'Market report' }] }), 'constraint_violated'],
    ['two of the item', wanted({ quantity: 2 }), 'constraint_violated'],
    [
      'one item for two requirements',
      wanted({}, { id: 'line_2', acceptable_items: [REPORT], quantity: 1 }),
      'constraint_violated',
    ],
    ['two limits that agree', under(WANTED, lineItems([{ id: 'l', acceptable: [REPORT], quantity: 1 }])), 'accepted'],
    [
      'two limits of which the second is violated',
      under(WANTED, lineItems([{ id: 'l', acceptable: [REPORT], quantity: 2 }])),
      'constraint_violated',
    ],
    ['no line items', under(allowedMerchants([MERCHANT])), 'claims_invalid'],
    ['no constraints', under(), 'claims_invalid'],
    ['an unknown constraint', and({ type: 'checkout.colour' }), 'constraint_unresolved'],
    ['a constraint named as something of every object', and({ type: 'toString' }), 'constraint_unresolved'],
    [
      'a constraint of payments',
      and({ type: 'payment.amount_range', currency: 'USDC', max: 1 }),
      'constraint_unresolved',
    ],
    ['no requirements', items([]), 'claims_invalid'],
    ['none of an item', wanted({ quantity: 0 }), 'claims_invalid'],
    ['a thousand of an item', wanted({ quantity: 1_000 }), 'constraint_violated'],
    ['a thousand and one', wanted({ quantity: 1_001 }), 'constraint_unresolved'],
    ['thirty-two requirements', items(many(32)), 'constraint_violated'],
    ['thirty-three', items(many(33)), 'constraint_unresolved'],
    ['a checkout without items', () => without('line_items'), 'constraint_violated'],
    ['a checkout without merchant', () => without('merchant'), 'constraint_violated'],
  ] satisfies readonly Row[]);

  it('hold for the sub-agent as they do for the agent', async () => {
    const bad = withMandate({
      constraints: [{ ...WANTED.body, items: [{ id: 'l', acceptable_items: [REPORT], quantity: 2 }] }],
    });
    for (const [hands, expected] of [
      [{}, 'accepted'],
      [{ open: bad }, 'refused'],
      [{ subAgent: bad }, 'refused'],
    ] as const) {
      // What was disclosed of the constraints that the hand replaced belongs to nothing: plain ones
      // are used throughout.
      const constraints = [plain({ ...WANTED.body, items: [{ id: 'l', acceptable_items: [REPORT], quantity: 1 }] })];
      const verdict = await verify(mint.autonomous({ constraints, delegated: true, hands }).header);
      assert.equal(verdict.kind, expected);
      if (verdict.kind === 'refused') assert.equal(verdict.reason, 'constraint_violated');
    }
  });

  it('are named by their type', async () => {
    const verdict = await verify(merchants([])());
    assert.equal(verdict.kind === 'refused' && verdict.constraint, 'checkout.allowed_merchants');
    const malformed = await verify(merchants({})());
    assert.equal(malformed.kind === 'refused' && malformed.constraint, 'checkout.allowed_merchants');
    const unknown = await verify(and({ type: 'checkout.colour' })());
    assert.equal(unknown.kind === 'refused' && unknown.constraint, undefined);
  });
});

/**
 * All that could be withheld of the constraints is withheld: the mandate itself is the last
 * disclosure.
 */
function withheld(...more: readonly Constraint[]): string {
  const constraints = [
    ...(more.length === 0
      ? [WANTED]
      : [plain({ ...WANTED.body, items: [{ id: 'l', acceptable_items: [REPORT], quantity: 1 }] })]),
    ...more,
  ];
  return mint.autonomous({ constraints, hands: { open: withDisclosureTexts((texts) => texts.slice(-1)) } }).header;
}

function without(name: string): string {
  return mint.autonomous({ checkout: withCheckoutClaims(({ [name]: _, ...claims }) => claims) }).header;
}
