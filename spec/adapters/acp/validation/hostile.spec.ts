import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { validatorOf } from '../../../../src/adapters/acp/validation/validator.ts';
import type { Json } from '../../../../src/json/types.ts';
import { createWith } from './bodies.ts';

describe('a hostile document of the largest size', () => {
  const SIZE = 262_144;
  const many = (length: number) => Array.from({ length: Math.floor(SIZE / length) }, (_, index) => index);
  const rows: readonly (readonly [what: string, document: Json])[] = [
    [
      'equal-looking declarations',
      createWith({ capabilities: { extensions: many(20).map((index) => ({ name: `a${index}` })) } }),
    ],
    ['declarations that are none', createWith({ capabilities: { extensions: many(4).map((index) => [index]) } })],
    ['an address with one long label', createWith({ buyer: { email: `a@${'a'.repeat(SIZE)}` } })],
    ['an address with many labels', createWith({ buyer: { email: `a@${'a.'.repeat(SIZE / 2)}` } })],
    ['an address with hyphens', createWith({ buyer: { email: `a@${'a-'.repeat(SIZE / 2)}` } })],
    ['an address without host', createWith({ buyer: { email: `${'a.'.repeat(SIZE / 2)}@` } })],
    ['a long time', createWith({ affiliate_attribution: { provider: 'x', token: 'x', issued_at: 't'.repeat(SIZE) } })],
    [
      'a long URL',
      createWith({
        affiliate_attribution: {
          provider: 'x',
          token: 'x',
          source: { type: 'url', url: `x://${'%20:'.repeat(SIZE / 4)}` },
        },
      }),
    ],
    [
      'a URL of addresses',
      createWith({
        affiliate_attribution: {
          provider: 'x',
          token: 'x',
          source: { type: 'url', url: `x://[${'1:'.repeat(SIZE / 2)}` },
        },
      }),
    ],
    [
      'a long name of an extension',
      createWith({ capabilities: { extensions: [{ name: `${'a.'.repeat(SIZE / 2)}A` }] } }),
    ],
  ];
  for (const [what, document] of rows)
    it(`is judged in a moment: ${what}`, () => {
      const validate = validatorOf('wire', 'CheckoutSessionCreateRequest');
      const started = performance.now();
      validate(document);
      assert.ok(performance.now() - started < 500, `${performance.now() - started} ms`);
    });
});
