import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { closeSchema } from '../../src/catalogue/close.ts';
import { patternFault } from '../../src/catalogue/pattern.ts';
import { MAX_SUBSCHEMAS } from '../../src/catalogue/schema-check.ts';
import { textFault } from '../../src/catalogue/text.ts';
import type { JsonObject } from '../../src/json/types.ts';
import { catalogueOf, faultsOf, object, resourceOf } from './resources.ts';

const text = { type: 'string' };
const conditional = (condition: object, consequence: object): object =>
  Object.fromEntries([
    ['if', condition],
    ['then', consequence],
  ]);

describe('an input schema is refused at start', () => {
  const ROWS: readonly (readonly [string, object, string, RegExp])[] = [
    ['that is no object', { type: 'string' }, 'inputSchema.type', /must be object/],
    [
      'with an unknown keyword',
      object({ a: { type: 'string', maxLenght: 3 } }),
      'inputSchema.properties.a.maxLenght',
      /did you mean maxLength/,
    ],
    [
      'with a keyword of another dialect',
      object({ a: { type: 'string', nullable: true } }),
      'inputSchema.properties.a.nullable',
      /not a keyword that is enforced/,
    ],
    [
      'with a keyword nobody asserts',
      object({ a: { type: 'string', contentEncoding: 'base64' } }),
      'inputSchema.properties.a.contentEncoding',
      /not a keyword/,
    ],
    [
      'with an unknown format',
      object({ a: { type: 'string', format: 'iban' } }),
      'inputSchema.properties.a.format',
      /not a format/,
    ],
    [
      'with a number format',
      object({ a: { type: 'string', format: 'int32' } }),
      'inputSchema.properties.a.format',
      /not a format/,
    ],
    [
      'with a keyword that has no effect',
      object({ a: { type: 'integer', maxLength: 3 } }),
      'inputSchema.properties.a.maxLength',
      /for type string/,
    ],
    [
      'with a keyword that may not apply',
      object({ a: { maxLength: 3 } }),
      'inputSchema.properties.a.maxLength',
      /needs "type: string"/,
    ],
    [
      'with a value of the wrong shape',
      object({ a: { type: 'string', minLength: -1 } }),
      'inputSchema.properties.a.minLength',
      /not valid JSON Schema/,
    ],
    [
      'with a wrong type name',
      object({ a: { type: 'text' } }),
      'inputSchema.properties.a.type',
      /not valid JSON Schema/,
    ],
    [
      'with a remote reference',
      object({ a: { $ref: 'https://example.com/s.json' } }),
      'inputSchema.properties.a.$ref',
      /in this document/,
    ],
    [
      'with a reference to nothing',
      object({ a: { $ref: '#/$defs/none' } }),
      'inputSchema.properties.a.$ref',
      /in this document/,
    ],
    ['that contains itself', object({ a: { $ref: '#' } }), 'inputSchema.properties.a.$ref', /recursive/],
    [
      'with a cycle of references',
      object({ a: { $ref: '#/$defs/x' } }, { $defs: { x: { $ref: '#/$defs/y' }, y: { $ref: '#/$defs/x' } } }),
      'inputSchema.$defs.y.$ref',
      /recursive/,
    ],
    [
      'with a dynamic reference',
      object({ a: { $dynamicRef: '#x' } }),
      'inputSchema.properties.a.$dynamicRef',
      /not a keyword/,
    ],
    ['that is asynchronous', { ...object({}), $async: true }, 'inputSchema.$async', /not a keyword/],
    [
      'of another draft',
      { ...object({}), $schema: 'http://json-schema.org/draft-07/schema#' },
      'inputSchema.$schema',
      /2020-12/,
    ],
    ['with a reserved name', object({ _payment: text }), 'inputSchema.properties', /_payment.*reserved/],
    [
      'with a reserved name deep inside',
      object({ a: object({ _authorization: text }) }),
      'inputSchema.properties.a.properties',
      /reserved/,
    ],
    ['that requires a reserved name', { ...object({}), required: ['_payment'] }, 'inputSchema.required', /reserved/],
    [
      'that requires what it does not declare',
      object({ city: text }, { required: ['town'] }),
      'inputSchema.required',
      /lists town/,
    ],
    [
      'with a hidden instruction',
      object({ a: { type: 'string', description: 'x\u202ey' } }),
      'inputSchema.properties.a.description',
      /bidirectional/,
    ],
    [
      'with a slow pattern',
      object({ a: { type: 'string', pattern: '^(a+)+$' } }),
      'inputSchema.properties.a.pattern',
      /nested quantifiers/,
    ],
    [
      'with a slow pattern property',
      { type: 'object', patternProperties: { '(a+)+': text } },
      'inputSchema.patternProperties',
      /nested quantifiers/,
    ],
    [
      'with a broken pattern',
      object({ a: { type: 'string', pattern: '(' } }),
      'inputSchema.properties.a.pattern',
      /regular expression/,
    ],
  ];
  for (const [title, schema, path, message] of ROWS)
    it(title, () => {
      const found = faultsOf(schema);
      const fault = found.find((candidate) => candidate.path === path);
      assert.ok(fault, JSON.stringify(found));
      assert.match(fault.message, message);
    });

  it('that grows with every reference (a bomb), quickly', () => {
    const $defs: Record<string, object> = { d0: text };
    for (let level = 1; level <= 40; level += 1)
      $defs[`d${level}`] = { allOf: [{ $ref: `#/$defs/d${level - 1}` }, { $ref: `#/$defs/d${level - 1}` }] };
    const started = performance.now();
    const found = faultsOf(object({ a: { $ref: '#/$defs/d40' } }, { $defs }));
    assert.ok(found.some(({ message }) => message.includes(`${MAX_SUBSCHEMAS} schemas`)));
    assert.ok(performance.now() - started < 1_000);
  });
  it('on both sides of the number of schemas', () => {
    const wide = (count: number) =>
      object(Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, text])));
    assert.deepEqual(faultsOf(wide(MAX_SUBSCHEMAS - 1)), []);
    assert.equal(faultsOf(wide(MAX_SUBSCHEMAS)).length, 1);
  });
  it('unless a slow pattern is accepted explicitly', () =>
    assert.deepEqual(
      faultsOf(object({ a: { type: 'string', pattern: '^(?!x)' } }), {}, { allowSlowPattern: true }),
      [],
    ));
  it('not for what 2020-12 allows', () =>
    assert.deepEqual(
      faultsOf(
        object(
          {
            a: { type: ['string', 'null'], format: 'date-time' },
            b: { anyOf: [{ type: 'integer', minimum: 1 }, { const: 'all' }] },
            c: { type: 'array', prefixItems: [text], items: false, uniqueItems: true },
            d: { $ref: '#/$defs/address' },
            e: true,
          },
          {
            $schema: 'https://json-schema.org/draft/2020-12/schema',
            $defs: { address: object({ street: text }, { required: ['street'] }) },
            ...conditional({ required: ['a'] }, { required: ['b'] }),
            dependentRequired: { c: ['d'] },
          },
        ),
      ),
      [],
    ));
});

describe('patterns', () => {
  const SLOW = [
    '(?=a)',
    '(?!a)',
    '(?<=a)b',
    '(?<!a)b',
    '(a)\\1',
    '(?<n>a)\\k<n>',
    '(a+)+',
    '(a*)*',
    '(?:a+b?){2,}',
    '((a+))+',
    '([a-z]+)*',
    '(x(a|b+)y)*',
  ];
  for (const pattern of SLOW)
    it(`${pattern} is slow`, () => {
      assert.match(patternFault(pattern, false) ?? '', /must not use/);
      assert.equal(patternFault(pattern, true), undefined);
    });
  const FINE = [
    '^[a-z]{1,5}$',
    '(a|b)+',
    '(?:abc)*',
    '(ab?c)+',
    '(a{3})+',
    '\\(a+\\)+',
    '[(a+)]+',
    '(a+)?',
    'a+b*c+',
    '\\d{4}-\\d{2}',
    '(?<year>\\d{4})',
    '\\\\1',
    '[\\1]',
  ];
  for (const pattern of FINE) it(`${pattern} is fine`, () => assert.equal(patternFault(pattern, false), undefined));
  for (const pattern of ['\\p{L}+', '\\P{L}', '\\u{1f600}', '[😀]'])
    it(`${pattern} means something else without Unicode mode, so it is refused`, () =>
      assert.match(patternFault(pattern, true) ?? '', /must not/));
  it('have a length', () => {
    assert.equal(patternFault('a'.repeat(1_024), false), undefined);
    assert.match(patternFault('a'.repeat(1_025), false) ?? '', /1024/);
  });
});

describe('published text', () => {
  for (const bad of [
    '\u0000',
    '\u001b[31m',
    '\u007f',
    '\u0085',
    '\u202a',
    '\u202e',
    '\u2066',
    '\u2069',
    '\u200e',
    '\u200b',
    '\ufeff',
    '\u{e0041}',
    '\ud800',
  ])
    it(`refuses ${JSON.stringify(bad)}`, () => assert.notEqual(textFault(`a${bad}b`), undefined));
  for (const good of ['', 'Straße, 東京, العربية', 'two\nlines\tand a tab', '👩‍👩‍👧', 'e\u0301'])
    it(`accepts ${JSON.stringify(good)}`, () => assert.equal(textFault(good), undefined));
});

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
    assert.deepEqual(resources[0]?.inputSchema, catalogue.inputSchemas.get('it'));
    assert.deepEqual(
      resources[0]?.inputSchema,
      object({ a: object({}, { additionalProperties: false }) }, { additionalProperties: false }),
    );
  });
});
