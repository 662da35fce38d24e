import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SCHEMA_FILES } from '../../../../src/adapters/acp/validation/schemas.ts';
import { BUILDS } from '../../../../src/adapters/acp/validation/types.ts';
import { validatorOf } from '../../../../src/adapters/acp/validation/validator.ts';
import { isObject, type Json } from '../../../../src/json/types.ts';
import { FORMATS } from '../../../../src/resources/patterns/formats.ts';
import { patternFault } from '../../../../src/resources/patterns/linear.ts';
import { VECTORS } from './vectors/documents.ts';

/** Longest turn that one document may take, milliseconds of CPU. */
const LIMIT_MS = 50;

function* members(node: Json, name: string): Generator<string> {
  if (Array.isArray(node)) for (const item of node as readonly Json[]) yield* members(item, name);
  if (!isObject(node)) return;
  for (const [key, value] of Object.entries(node))
    if (key === name && typeof value === 'string') yield value;
    else yield* members(value, name);
}

describe('texts in documents of checkouts', () => {
  const published = Object.values(SCHEMA_FILES);

  it('are matched by patterns and formats that take linear time, all of them', () => {
    const patterns = new Set(published.flatMap((schema) => [...members(schema, 'pattern')]));
    assert.ok(patterns.size > 0);
    for (const pattern of patterns) assert.equal(patternFault(pattern), undefined, pattern);
    for (const format of new Set(published.flatMap((schema) => [...members(schema, 'format')])))
      assert.ok(Object.hasOwn(FORMATS, format), format);
  });

  for (const build of BUILDS)
    it(`share the budget of their document: ${build}`, () => {
      const { full } = VECTORS['CheckoutSession'];
      assert.ok(isObject(full));
      const validate = validatorOf(build, 'CheckoutSession');
      assert.equal(validate(full), undefined);
      const link = { type: 'terms_of_use', url: `https://shop.example/${'a'.repeat(2_000)}` };
      const crowded = { ...full, links: Array.from({ length: 500 }, () => link) };
      const start = process.threadCpuUsage();
      const fault = validate(crowded);
      const { user, system } = process.threadCpuUsage(start);
      assert.deepEqual([fault?.param, fault?.keyword], ['$', 'maxLength']);
      assert.ok((user + system) / 1_000 < LIMIT_MS, `${(user + system) / 1_000} ms of CPU`);
      assert.equal(validate(full), undefined, 'the next document has a budget of its own');
    });
});
