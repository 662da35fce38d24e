import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/json/json.ts';
import { closeSchema } from '../../../src/resources/schemas/closed-objects.ts';
import { createEngine } from '../../../src/resources/schemas/engine.ts';
import { textFault } from '../../../src/resources/schemas/schema-check.ts';
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

/** Characters of one and of two units, also halves of the latter. */
const unit = fc.constantFrom('a', 'é', '漢', '😀', '\ud83d', '\ude00');

describe('the bounds of the length of a text', () => {
  it('are judged as the original judges them, at every length near them', () => {
    const engines = [createEngine({ allErrors: true }), new Ajv2020({ allErrors: true })];
    for (const bound of [0, 1, 2, 5]) {
      const [own, original] = engines.map((engine) =>
        engine.compile({ type: 'string', minLength: bound, maxLength: bound }),
      );
      fc.assert(
        fc.property(fc.string({ unit, maxLength: 2 * bound + 2 }), (text) => {
          assert.equal(own?.(text), original?.(text), JSON.stringify(text));
          const said = [own, original].map((validator) =>
            (validator?.errors ?? []).map(({ keyword, message, params, schemaPath }) => ({
              keyword,
              message,
              params,
              schemaPath,
            })),
          );
          assert.deepEqual(said[0], said[1]);
        }),
        { numRuns: 300 },
      );
    }
  });

  it('do not count the characters of a text that is short enough anyway', () => {
    const most = 1_000;
    const validate = createEngine({ allErrors: false }).compile({ type: 'string', maxLength: most });
    const counted: number[] = [];
    const { codePointAt } = String.prototype;
    String.prototype.codePointAt = function count(at) {
      counted.push(at);
      return codePointAt.call(this, at);
    };
    try {
      for (const length of [most, 2 * most + 1]) validate('a'.repeat(length));
      assert.equal(counted.length, 0);
      assert.equal(validate('😀'.repeat(most)), true);
      assert.equal(counted.length, most);
    } finally {
      String.prototype.codePointAt = codePointAt;
    }
  });
});

describe('published text', () => {
  const control = ['\u0000', '\u001b[31m', '\u007f', '\u0085'];
  const hidden = ['\u202a', '\u202e', '\u2066', '\u2069', '\u200e', '\u200b', '\ufeff', '\u{e0041}', '\ud800'];
  for (const bad of [...control, ...hidden])
    it(`refuses ${JSON.stringify(bad)}`, () => assert.notEqual(textFault(`a${bad}b`), undefined));
  for (const good of ['', 'Straße, 東京, العربية', 'two\nlines\tand a tab', '👩‍👩‍👧', 'e\u0301'])
    it(`accepts ${JSON.stringify(good)}`, () => assert.equal(textFault(good), undefined));
});
