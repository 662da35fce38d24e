import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { validatorOf } from '../../../../src/adapters/acp/validation/validator.ts';
import type { Json, JsonObject } from '../../../../src/json/types.ts';
import { createWith } from './bodies.ts';

describe('a hostile document of the largest size', () => {
  const SIZE = 262_144;
  const many = (length: number) => Array.from({ length: Math.floor(SIZE / length) }, (_, index) => index);
  const extensions = (list: Json): JsonObject => ({ capabilities: { extensions: list } });
  const email = (text: string): JsonObject => ({ buyer: { email: text } });
  const attribution = (changes: JsonObject): JsonObject => {
    return { affiliate_attribution: { provider: 'x', token: 'x', ...changes } };
  };
  const url = (text: string): JsonObject => attribution({ source: { type: 'url', url: text } });
  const rows: readonly (readonly [what: string, changes: JsonObject])[] = [
    ['equal-looking declarations', extensions(many(20).map((index) => ({ name: `a${index}` })))],
    ['declarations that are none', extensions(many(4).map((index) => [index]))],
    ['an address with one long label', email(`a@${'a'.repeat(SIZE)}`)],
    ['an address with many labels', email(`a@${'a.'.repeat(SIZE / 2)}`)],
    ['an address with hyphens', email(`a@${'a-'.repeat(SIZE / 2)}`)],
    ['an address without host', email(`${'a.'.repeat(SIZE / 2)}@`)],
    ['a long time', attribution({ issued_at: 't'.repeat(SIZE) })],
    ['a long URL', url(`x://${'%20:'.repeat(SIZE / 4)}`)],
    ['a URL of addresses', url(`x://[${'1:'.repeat(SIZE / 2)}`)],
    ['a long name of an extension', extensions([{ name: `${'a.'.repeat(SIZE / 2)}A` }])],
  ];
  for (const [what, changes] of rows)
    it(`is checked in a moment: ${what}`, () => {
      const validate = validatorOf('wire', 'CheckoutSessionCreateRequest');
      const document = createWith(changes);
      const started = performance.now();
      validate(document);
      assert.ok(performance.now() - started < 500, `${performance.now() - started} ms`);
    });
});
