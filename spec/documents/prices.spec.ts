import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { priceOfInput, quotedUnits } from '../../src/payments/pricing/by-input.ts';
import { load } from '../config/document/document.ts';
import { blocksOf } from './blocks.ts';

const DECIMALS = 6;
/** Has the properties that the rules of docs/configuration.md point at. */
const INPUT = { items: ['a', 'b', 'c'], pages: 11, quality: 'high' };
const SCHEMA = {
  type: 'object',
  properties: {
    items: { type: 'array' },
    pages: { type: 'integer' },
    quality: { type: 'string', enum: ['low', 'high'] },
  },
  required: ['items', 'pages', 'quality'],
};
/** In base units. */
const PRICES: Readonly<Record<string, bigint>> = { unit: 30_000n, tier: 50_000n, choice: 50_000n, quote: 250_000n };

const ruleOf = (line: string): object => (parse(line) as { readonly by: object }).by;

describe('the rules of pricing.by in docs/configuration.md', () => {
  const text = blocksOf('docs/configuration.md').find(({ detail }) => detail === 'spec/documents/prices.spec.ts')?.text;
  const rules = (text ?? '').trim().split('\n');

  it('are all that there are', () =>
    assert.deepEqual(
      rules.flatMap((rule) => Object.keys(ruleOf(rule))),
      Object.keys(PRICES),
    ));

  for (const rule of rules)
    it(`price an input: ${rule}`, () => {
      const { pricing } =
        load({
          'resources.report.backend': { method: 'POST', path: '/reports' },
          'resources.report.inputSchema': SCHEMA,
          'resources.report.pricing.by': ruleOf(rule),
        }).resources[0] ?? assert.fail();
      assert.ok(pricing.type === 'fixed' && pricing.by !== undefined);
      const priced =
        pricing.by.kind === 'quote'
          ? quotedUnits(pricing.by, { amount: '0.25' }, DECIMALS)
          : priceOfInput(pricing.by, INPUT, DECIMALS);
      assert.deepEqual(priced, { kind: 'price', units: PRICES[pricing.by.kind] });
    });
});
