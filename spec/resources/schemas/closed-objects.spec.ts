import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../../src/json/types.ts';
import { closeSchema } from '../../../src/resources/schemas/closed-objects.ts';
import { catalogueOf, object, resourceOf } from '../resources.ts';

const text = { type: 'string' };
const conditional = (condition: object, consequence: object): object =>
  Object.fromEntries([
    ['if', condition],
    ['then', consequence],
  ]);

describe('closing', () => {
  const close = (schema: object): object => closeSchema(schema as JsonObject);
  it('closes objects at every level, and leaves explicit choices', () =>
    assert.deepEqual(
      close(
        object({
          a: object({}),
          b: { type: 'array', items: object({}) },
          c: object({}, { additionalProperties: true }),
          d: { type: 'object', additionalProperties: object({}) },
          e: object({}, { unevaluatedProperties: text }),
        }),
      ),
      object(
        {
          a: object({}, { additionalProperties: false }),
          b: { type: 'array', items: object({}, { additionalProperties: false }) },
          c: object({}, { additionalProperties: true }),
          d: { type: 'object', additionalProperties: object({}, { additionalProperties: false }) },
          e: object({}, { unevaluatedProperties: text }),
        },
        { additionalProperties: false },
      ),
    ));
  it('gives strings under a pattern a length', () =>
    assert.deepEqual(
      close(object({ a: { type: 'string', pattern: 'x' }, b: { type: 'string', pattern: 'x', maxLength: 9 } })),
      {
        ...object({
          a: { type: 'string', pattern: 'x', maxLength: 4_096 },
          b: { type: 'string', pattern: 'x', maxLength: 9 },
        }),
        additionalProperties: false,
      },
    ));
  it('does not change what it was given', () => {
    const schema = object({ a: object({}) });
    const before = JSON.stringify(schema);
    close(schema);
    assert.equal(JSON.stringify(schema), before);
  });

  const address = object({ street: text }, { required: ['street'] });
  const composed = object(
    { kind: { enum: ['a', 'b'] }, home: { $ref: '#/$defs/address' }, choice: { anyOf: [text, object({ x: text })] } },
    {
      $defs: { address },
      allOf: [{ properties: { extra: text } }],
      ...conditional(
        { properties: { kind: { const: 'b' } }, required: ['kind'] },
        { properties: { onlyB: text }, required: ['onlyB'] },
      ),
    },
  );
  const CASES: readonly (readonly [object, boolean])[] = [
    [{ kind: 'a', extra: 'x' }, true],
    [{ kind: 'a', other: 'x' }, false],
    [{ kind: 'a', onlyB: 'x' }, true],
    [{ kind: 'b', onlyB: 1 }, false],
    [{ kind: 'a', extra: 1 }, false],
    [{ kind: 'b', onlyB: 'x' }, true],
    [{ kind: 'b' }, false],
    [{ home: { street: 'x' } }, true],
    [{ home: { street: 'x', city: 'y' } }, false],
    [{ choice: { x: 'y' } }, true],
    [{ choice: { y: 'y' } }, false],
    [{ choice: 'y' }, true],
  ];
  for (const [value, ok] of CASES)
    it(`of composed schemas ${ok ? 'accepts' : 'refuses'} ${JSON.stringify(value)}`, () =>
      assert.equal(resourceOf(composed).prepare(value as JsonObject, undefined).ok, ok));
  it('respects a part that was opened on purpose', () => {
    const open = object({}, { allOf: [{ properties: { a: text }, additionalProperties: text }] });
    assert.deepEqual(close(open), open);
  });
  it('names what the parts declare', () =>
    assert.deepEqual(
      close(
        object({ a: text }, { anyOf: [{ properties: { a: text, b: text } }, { patternProperties: { '^x': text } }] }),
      ),
      {
        ...object(
          { a: text, b: true },
          { anyOf: [{ properties: { a: text, b: text } }, { patternProperties: { '^x': text } }] },
        ),
        patternProperties: { '^x': true },
        additionalProperties: false,
      },
    ));
  it('is what is published', () => {
    const catalogue = catalogueOf(object({ a: object({}) }));
    const { resources } = JSON.parse(Buffer.from(catalogue.listing.bytes).toString()) as {
      resources: { inputSchema: object }[];
    };
    assert.deepEqual(resources[0]?.inputSchema, catalogue.listed[0]?.inputSchema);
    assert.deepEqual(
      resources[0]?.inputSchema,
      object({ a: object({}, { additionalProperties: false }) }, { additionalProperties: false }),
    );
  });
});
