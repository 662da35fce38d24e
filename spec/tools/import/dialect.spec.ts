import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json, JsonObject } from '../../../src/json/json.ts';
import { resourceOf as compiled } from '../../resources/resources.ts';
import { imported, inputOf, resourceOf, TABLES, type Taken } from './openapi.ts';

const PLACEHOLDER = ['$', '{ADMIN_TOKEN}'].join('');

describe('a schema of OpenAPI becomes one that the gateway enforces', () => {
  for (const { title, openapi, schema, becomes } of TABLES.rewritten)
    it(title, () => {
      const property = becomes === 'the same' ? schema : becomes;
      assert.deepEqual(inputOf(schema, openapi), { property, leftOut: [] });
    });

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

describe('what the gateway cannot enforce', () => {
  for (const { title, schema, says } of TABLES.refused) {
    const message = new RegExp(says);
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

const text = { type: 'string' };
const flag = { type: 'boolean' };
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const Cat = { type: 'object', required: ['kind'], properties: { kind: text, meow: flag } };
const Dog = { type: 'object', required: ['kind'], properties: { kind: text, bark: flag } };
const mapping = { cat: '#/components/schemas/Cat', dog: 'Dog' };
const pets = { oneOf: [ref('Cat'), ref('Dog')], discriminator: { propertyName: 'kind', mapping } };
const Pet = { type: 'object', required: ['kind'], properties: { kind: text, name: text } };
const cat = { kind: 'cat', meow: true };
const dog = { kind: 'dog', bark: true };
const named = (kind: string, more: object = {}) => ({ kind, ...more });
const owner = { type: 'object', properties: { id: text } };

const many = Array.from({ length: 40 }, (_, at) => `Kind${at}`);
const manyKinds = Object.fromEntries(
  many.map((name) => {
    const properties = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`${name}_${at}`, text]));
    return [name, { allOf: [ref('Pet'), { type: 'object', properties }] }];
  }),
);

/** Of forty schemas: too long for the table. */
const MANY: Taken = {
  title: 'a choice of many',
  schema: { properties: { more: text }, oneOf: many.map(ref), discriminator: { propertyName: 'kind' } },
  components: { Pet, ...manyKinds },
  takes: [{ kind: 'Kind7', Kind7_3: 'x', name: 'x', more: 'x' }, named('Kind39')],
  refuses: [{ kind: 'Kind7', Kind8_3: 'x' }, named('Kind40'), { kind: 'Kind7', less: 'x' }],
};

/** Whether the gateway takes a value of the schema as a member of a body. */
function taking(schema: object, components: object): (value: unknown) => boolean {
  const body = { type: 'object', required: ['it'], properties: { it: schema } };
  const { inputSchema } = resourceOf(
    imported(
      { '/x': { post: { requestBody: { required: true, content: { 'application/json': { schema: body } } } } } },
      { openapi: '3.0.3', components: { schemas: { Cat, Dog, Owner: owner, ...components } } },
    ),
  );
  const resource = compiled(inputSchema as JsonObject);
  return (value) => resource.prepare({ it: value as Json }, undefined).ok;
}

describe('an imported schema takes what the document means', () => {
  for (const { title, schema, components = {}, takes, refuses } of [...TABLES.taken, MANY])
    it(title, () => {
      const isTaken = taking(schema, components);
      for (const value of takes) assert.ok(isTaken(value), `refuses ${JSON.stringify(value)}`);
      for (const value of refuses) assert.ok(!isTaken(value), `takes ${JSON.stringify(value)}`);
    });

  it('and shows no default that its branches refuse', () => {
    const decimal = { anyOf: [{ type: 'number' }, { type: 'string', pattern: '^(?!-)' }], default: '0.1' };
    assert.deepEqual(inputOf(decimal).property, { anyOf: [{ type: 'number' }] });
    const said = { oneOf: [ref('Cat')], discriminator: { propertyName: 'kind' } };
    const kind = { type: 'string', const: 'cat', default: 'cat' };
    const { property } = inputOf(said, '3.1.0', { Cat: { type: 'object', properties: { kind } } });
    assert.ok(!JSON.stringify(property).includes('default'));
  });

  it('and leaves out a branch that it cannot express', () => {
    const broken = { type: 'object', properties: { kind: text }, required: ['kind'], $dynamicRef: '#x' };
    const isTaken = taking(pets, { Dog: broken });
    assert.deepEqual([isTaken(cat), isTaken(dog)], [true, false]);
  });
});
