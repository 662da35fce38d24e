import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inputOf } from './openapi.ts';

const REWRITTEN: readonly (readonly [string, string, object, object])[] = [
  ['3.0: nullable', '3.0.3', { type: 'string', nullable: true }, { type: ['string', 'null'] }],
  [
    '3.0: nullable beside enum',
    '3.0.3',
    { type: 'string', nullable: true, enum: ['a', 'b', 'a'] },
    { type: ['string', 'null'], enum: ['a', 'b', null] },
  ],
  [
    'values of a text that YAML reads as numbers and booleans',
    '3.0.3',
    { type: 'string', nullable: true, enum: [1, 'two', true, null] },
    { type: ['string', 'null'], enum: ['1', 'two', 'true', null] },
  ],
  [
    'values of other types',
    '3.1.0',
    { type: ['string', 'integer'], enum: [1, '2'] },
    { type: ['string', 'integer'], enum: [1, '2'] },
  ],
  ['3.0: nullable without a type, which means nothing', '3.0.3', { nullable: true, enum: ['a'] }, { enum: ['a'] }],
  [
    '3.0: exclusiveMinimum: true',
    '3.0.3',
    { type: 'number', minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false },
    { type: 'number', minimum: 1, exclusiveMinimum: 1, maximum: 5 },
  ],
  ['3.0: example', '3.0.3', { type: 'string', example: 'x' }, { type: 'string', examples: ['x'] }],
  ['3.1: types', '3.1.0', { type: ['string', 'null'], minLength: 1 }, { type: ['string', 'null'], minLength: 1 }],
  [
    '3.1: exclusiveMinimum',
    '3.1.0',
    { type: 'integer', exclusiveMinimum: 3 },
    { type: 'integer', exclusiveMinimum: 3 },
  ],
  ['3.1: const', '3.1.0', { const: 3 }, { const: 3 }],
  [
    'a format that is a range',
    '3.0.3',
    { type: 'integer', format: 'int32', minimum: 0 },
    { type: 'integer', minimum: 0, maximum: 2_147_483_647 },
  ],
  ['a format that is enforced', '3.0.3', { type: 'string', format: 'uuid' }, { type: 'string', format: 'uuid' }],
  ['a format that is not enforced', '3.0.3', { type: 'string', format: 'phone' }, { type: 'string' }],
  ['a rule without a type', '3.1.0', { minLength: 2 }, { type: 'string', minLength: 2 }],
  ['a rule of another type', '3.1.0', { type: 'string', minimum: 2 }, { type: 'string' }],
  [
    'annotations without use, and extensions',
    '3.1.0',
    { type: 'string', title: 'T', xml: {}, externalDocs: {}, 'x-mcp-header': 'A', $comment: 'c', deprecated: true },
    { type: 'string', deprecated: true },
  ],
  ['an object of which nothing is said', '3.1.0', { type: 'object' }, { type: 'object', additionalProperties: true }],
  [
    'a map',
    '3.1.0',
    { type: 'object', additionalProperties: { type: 'integer' } },
    { type: 'object', additionalProperties: { type: 'integer' } },
  ],
  [
    'a required name that is not declared',
    '3.1.0',
    { type: 'object', properties: { a: { type: 'string' } }, required: ['a', 'b'] },
    { type: 'object', properties: { a: { type: 'string' }, b: {} }, required: ['a', 'b'] },
  ],
  [
    'members that only the server sets',
    '3.0.3',
    {
      type: 'object',
      properties: { id: { type: 'string', readOnly: true }, a: { type: 'string' } },
      required: ['id', 'a'],
    },
    { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
  ],
  [
    'a member that only the server sets, as a part of it says',
    '3.0.3',
    {
      type: 'object',
      properties: { id: { allOf: [{ type: 'string' }, { readOnly: true }] }, a: { type: 'string' } },
      required: ['id'],
    },
    { type: 'object', properties: { a: { type: 'string' } } },
  ],
  [
    'a required name that no part declares',
    '3.0.3',
    { allOf: [{ type: 'object', properties: { a: {} } }, { required: ['a', 'b'] }] },
    {
      allOf: [
        { type: 'object', properties: { a: {} } },
        { type: 'object', properties: { a: {}, b: {} }, required: ['a', 'b'] },
      ],
    },
  ],
  [
    'an escape that agents cannot read',
    '3.0.3',
    { type: 'string', pattern: '^[a\\-\\:]$' },
    { type: 'string', pattern: '^[a\\-:]$' },
  ],
  [
    'a single branch with a description',
    '3.0.3',
    { description: 'Here', allOf: [{ type: 'string', description: 'There' }] },
    { type: 'string', description: 'Here' },
  ],
  [
    'composition',
    '3.1.0',
    { oneOf: [{ type: 'string' }, { properties: { a: {} }, discriminator: { propertyName: 'a' } }] },
    { oneOf: [{ type: 'string' }, { type: 'object', properties: { a: {} } }] },
  ],
  [
    'unevaluatedProperties: false beside composition, which closing does anyway',
    '3.1.0',
    { type: 'object', allOf: [{ properties: { a: {} } }, { properties: { b: {} } }], unevaluatedProperties: false },
    {
      type: 'object',
      allOf: [
        { type: 'object', properties: { a: {} } },
        { type: 'object', properties: { b: {} } },
      ],
    },
  ],
];

const PLACEHOLDER = ['$', '{ADMIN_TOKEN}'].join('');

describe('a schema of OpenAPI becomes one that the gateway enforces', () => {
  for (const [title, version, schema, expected] of REWRITTEN)
    it(title, () => assert.deepEqual(inputOf(schema, version), { property: expected, leftOut: [] }));

  it('without placeholders, which a configuration would fill with secrets', () => {
    const { property } = inputOf({ type: 'string', description: `Pay ${PLACEHOLDER}\u200b now`, default: PLACEHOLDER });
    assert.deepEqual(property, { type: 'string', description: 'Pay $ {ADMIN_TOKEN} now' });
    assert.throws(() => inputOf({ enum: [PLACEHOLDER] }), /a text with \$\{/);
  });

  it('with descriptions of a bounded length, without markup', () => {
    const { property } = inputOf({ type: 'string', description: `<p>One</p>\n\n${'word '.repeat(200)}` });
    const { description = '' } = property as { readonly description?: string };
    assert.match(description, /^One word word .* word…$/);
    assert.ok(description.length <= 300, `${description.length}`);
  });
});

const REFUSED: readonly (readonly [string, object, RegExp])[] = [
  [
    'a pattern that needs look-around',
    { type: 'string', pattern: '^(?!x)' },
    /has the pattern .* must not use look-around/,
  ],
  ['a type that is none', { type: 'file' }, /has the type "file"/],
  ['rules of two types without a type', { minLength: 1, minimum: 1 }, /has no type, and rules for string and number/],
  [
    'a required member that it does not allow',
    { type: 'object', properties: { a: {} }, additionalProperties: false, required: ['b'] },
    /requires "b", which it does not allow/,
  ],
  ['an empty enum', { enum: [] }, /has an empty enum/],
  ['a list of schemas as items', { type: 'array', items: [{}] }, /a list of schemas as items/],
  ['a dynamic reference', { $dynamicRef: '#a' }, /\$dynamicRef/],
  ['a reference that leads nowhere', { $ref: '#/components/schemas/Gone' }, /refers to ".*Gone", which is not there/],
  [
    'a reference to another host',
    { $ref: 'https://example.com/a.json#/A' },
    /no file that was read beside the document/,
  ],
  ['a reference that is no text', { $ref: 7 }, /a \$ref that is no text/],
  ['a schema that is no object', { type: 'array', items: 7 }, /a schema that is no object/],
  ['a rule of the wrong shape', { type: 'string', minLength: 'three' }, /is not valid JSON Schema/],
];

describe('what the gateway cannot enforce', () => {
  for (const [title, schema, message] of REFUSED) {
    it(`keeps the operation out where it is required: ${title}`, () => assert.throws(() => inputOf(schema), message));
    if (title !== 'a rule of the wrong shape')
      it(`is left out where it is optional: ${title}`, () => {
        const { property, leftOut } = inputOf({ type: 'object', properties: { a: { type: 'string' }, b: schema } });
        assert.deepEqual(property, { type: 'object', properties: { a: { type: 'string' } } });
        assert.equal(leftOut.length, 1);
        assert.match(leftOut[0] ?? '', /^it\.b: /);
        assert.match(leftOut[0] ?? '', message);
      });
  }

  it('is left out of a choice that has other branches', () => {
    const { property, leftOut } = inputOf({ anyOf: [{ type: 'string' }, { type: 'file' }] });
    assert.deepEqual(property, { anyOf: [{ type: 'string' }] });
    assert.deepEqual(leftOut, ['it.anyOf[1]: has the type "file": use another, such as string']);
    assert.throws(() => inputOf({ anyOf: [{ type: 'file' }] }), /has the type "file"/);
  });

  for (const [title, schema] of [
    ['a choice of exactly one', { oneOf: [{ type: 'string' }, { type: 'file' }] }],
    ['a negation', { type: 'object', not: { properties: { a: { type: 'file' } } } }],
    ['a condition', { if: { properties: { a: { type: 'file' } } }, else: { required: ['b'] } }],
    [
      'a name that another part requires',
      { allOf: [{ type: 'object', properties: { a: { type: 'file' }, b: {} } }, { required: ['a'] }] },
    ],
  ] as const)
    it(`is not left out where more would fit without it: ${title}`, () =>
      assert.throws(() => inputOf(schema), /has the type "file": .* \(in /));

  it('closes a map', () => {
    const { property, leftOut } = inputOf({ type: 'object', additionalProperties: { type: 'file' } });
    assert.deepEqual(property, { type: 'object', additionalProperties: false });
    assert.deepEqual(leftOut, ['it.*: has the type "file": use another, such as string']);
  });

  for (const name of ['__proto__', 'constructor', 'prototype', '_payment', '_authorization', 'a\u202eb'])
    it(`is a property named ${JSON.stringify(name)}`, () => {
      const properties = JSON.parse(`{ "a": { "type": "string" }, ${JSON.stringify(name)}: { "type": "string" } }`);
      const { property, leftOut } = inputOf({ type: 'object', properties });
      assert.deepEqual(property, { type: 'object', properties: { a: { type: 'string' } } });
      assert.equal(leftOut.length, 1);
    });
});

describe('a reference', () => {
  const Long = {
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`name${index}`, { type: 'string' }])),
  };

  it('is written out where it stands once, and shared where it stands twice', () => {
    const { property } = inputOf({ $ref: '#/components/schemas/Long' }, '3.0.3', { Long });
    assert.deepEqual(property, Long);
    const twice = inputOf(
      {
        type: 'object',
        properties: { a: { $ref: '#/components/schemas/Long' }, b: { $ref: '#/components/schemas/Long' } },
      },
      '3.0.3',
      { Long },
    );
    const shared = { $ref: '#/$defs/Long' };
    assert.deepEqual(twice.property, { type: 'object', properties: { a: shared, b: shared } });
  });

  it('counts alone in 3.0 and beside other rules in 3.1', () => {
    const schema = { $ref: '#/components/schemas/Text', minLength: 3, description: 'Here' };
    const Text = { type: 'string', maxLength: 9 };
    assert.deepEqual(inputOf(schema, '3.0.3', { Text }).property, {
      type: 'string',
      maxLength: 9,
      description: 'Here',
    });
    assert.deepEqual(inputOf(schema, '3.1.0', { Text }).property, {
      type: 'string',
      description: 'Here',
      minLength: 3,
      allOf: [{ type: 'string', maxLength: 9 }],
    });
  });

  it('to a recursive schema is followed twice, and left out where it would go on', () => {
    const Tree = {
      type: 'object',
      properties: {
        name: { type: 'string' },
        children: { type: 'array', items: { $ref: '#/components/schemas/Tree' } },
      },
      required: ['name'],
    };
    const { property, leftOut } = inputOf({ $ref: '#/components/schemas/Tree' }, '3.0.3', { Tree });
    const leaf = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    assert.deepEqual(property, {
      ...leaf,
      properties: { name: { type: 'string' }, children: { type: 'array', items: leaf } },
    });
    assert.deepEqual(leftOut, ['it.children.[].children: is recursive: only what is optional can be left out']);
  });

  it('to a schema that requires itself keeps the operation out', () => {
    const Loop = { type: 'object', properties: { next: { $ref: '#/components/schemas/Loop' } }, required: ['next'] };
    assert.throws(() => inputOf({ $ref: '#/components/schemas/Loop' }, '3.0.3', { Loop }), /is recursive/);
  });

  it('to itself alone keeps the operation out', () => {
    const components = { A: { $ref: '#/components/schemas/B' }, B: { $ref: '#/components/schemas/A' } };
    assert.throws(() => inputOf({ $ref: '#/components/schemas/A' }, '3.0.3', components), /is recursive/);
  });

  it('is read alike from each place of a circle', () => {
    const A = { type: 'object', properties: { b: { $ref: '#/components/schemas/B' } } };
    const B = { type: 'object', properties: { a: { $ref: '#/components/schemas/A' }, n: { type: 'integer' } } };
    const { property } = inputOf(
      {
        type: 'object',
        properties: { first: { $ref: '#/components/schemas/A' }, second: { $ref: '#/components/schemas/B' } },
      },
      '3.0.3',
      { A, B },
    );
    const alone = inputOf({ $ref: '#/components/schemas/B' }, '3.0.3', { A, B }).property;
    assert.deepEqual((property as { properties: { second: object } }).properties.second, alone);
  });
});
