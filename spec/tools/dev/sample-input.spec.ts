import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sampleInput } from '../../../tools/dev/sample-input.ts';

describe('the input of a command to try', () => {
  const ROWS: readonly (readonly [what: string, member: object, value: unknown])[] = [
    ['an example', { type: 'string', examples: ['Berlin', 'Oslo'] }, 'Berlin'],
    ['a constant', { const: 7 }, 7],
    ['the usual value', { type: 'integer', default: 3 }, 3],
    ['a choice', { enum: ['en', 'de'] }, 'en'],
    ['a text of some length', { type: 'string', minLength: 6, maxLength: 8 }, 'texttt'],
    ['a short text', { type: 'string', maxLength: 2 }, 'te'],
    ['a number in its bounds', { type: 'integer', minimum: 5 }, 5],
    ['a number', { type: ['number', 'null'] }, 1],
    ['a switch', { type: 'boolean' }, true],
    ['a list', { type: 'array', minItems: 2, items: { type: 'integer' } }, [1, 1]],
    ['an object', { type: 'object', properties: { a: { type: 'null' } }, required: ['a'] }, { a: null }],
  ];
  for (const [what, member, value] of ROWS)
    it(`has ${what} for a member that is required`, () => {
      const properties = { wanted: member, spare: { type: 'string' } };
      assert.deepEqual(sampleInput({ type: 'object', properties, required: ['wanted'] }), { wanted: value });
    });

  it('is empty where nothing is required', () => {
    assert.deepEqual(sampleInput({ type: 'object', properties: { spare: { type: 'string' } } }), {});
    assert.deepEqual(sampleInput(undefined), {});
  });
});
