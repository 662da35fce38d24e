import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { matchesMetaSchema } from '../../src/resources/schemas/compiled.ts';
import { KEYWORDS } from '../../src/resources/schemas/keywords.ts';
import { bundledValidators } from './bundled-validators.ts';

/** A value of each kind that keywords take, or none takes. */
const VALUES = [
  null,
  true,
  -1,
  0.5,
  3,
  '',
  'object',
  '^[a-z]+$',
  '(',
  'urn:example:a',
  'not a uri %',
  [],
  ['a', 'a'],
  ['a', 'b'],
  [{ type: 'string' }, 7],
  {},
  { type: 'number' },
  { a: { type: 'nothing' } },
  { a: ['b', 'b'] },
  { '(': { type: 'string' } },
];

describe('the meta-schema in the bundle', () => {
  const { verdicts } = bundledValidators('meta-schema');

  it('judges every keyword with every kind of value as the source does', () => {
    const keywords = [...KEYWORDS.keys(), '$id', '$dynamicRef', 'unknown'];
    const documents = [true, 7, ...keywords.flatMap((keyword) => VALUES.map((value) => ({ [keyword]: value })))];
    const fromSource = documents.map((one) => (matchesMetaSchema(one) ? [] : matchesMetaSchema.errors));
    assert.ok(fromSource.filter((errors) => errors?.length !== 0).length > 300);
    assert.ok(fromSource.filter((errors) => errors?.length === 0).length > 200);
    assert.deepEqual(verdicts(documents), JSON.parse(JSON.stringify(fromSource)));
  });
});
