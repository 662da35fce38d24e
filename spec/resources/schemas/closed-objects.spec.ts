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
  it('closes objects at every level, except those that were opened on purpose', () => {
    const nested = (inner: object): object => ({
      a: inner,
      b: { type: 'array', items: inner },
      c: object({}, { additionalProperties: true }),
      d: { type: 'object', additionalProperties: inner },
      e: object({}, { unevaluatedProperties: text }),
    });
    const closed = { additionalProperties: false };
    assert.deepEqual(close(object(nested(object({})))), object(nested(object({}, closed)), closed));
  });
  it('gives strings under a pattern a length', () => {
    const strings = (length: object) =>
      object({ a: { ...text, pattern: 'x', ...length }, b: { ...text, pattern: 'x', maxLength: 9 } });
    assert.deepEqual(close(strings({})), { ...strings({ maxLength: 4_096 }), additionalProperties: false });
  });
  it('does not change its argument', () => {
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
  it('names the properties of the parts', () => {
    const anyOf = [{ properties: { a: text, b: text } }, { patternProperties: { '^x': text } }];
    assert.deepEqual(close(object({ a: text }, { anyOf })), {
      ...object({ a: text, b: true }, { anyOf }),
      patternProperties: { '^x': true },
      additionalProperties: false,
    });
  });
  it('gives the published schema', () => {
    const catalogue = catalogueOf(object({ a: object({}) }));
    const { resources } = JSON.parse(Buffer.from(catalogue.listing.bytes).toString()) as {
      resources: { inputSchema: object }[];
    };
    assert.deepEqual(resources[0]?.inputSchema, catalogue.listed[0]?.inputSchema);
    const closed = { additionalProperties: false };
    assert.deepEqual(resources[0]?.inputSchema, object({ a: object({}, closed) }, closed));
  });
});
