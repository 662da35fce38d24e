import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json, JsonObject } from '../../../src/json/types.ts';
import { resourceOf as compiled } from '../../resources/resources.ts';
import { imported, inputOf, resourceOf } from './openapi.ts';

const text = { type: 'string' };
const flag = { type: 'boolean' };
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const Cat = { type: 'object', required: ['kind'], properties: { kind: text, meow: flag } };
const Dog = { type: 'object', required: ['kind'], properties: { kind: text, bark: flag } };
const mapping = { cat: '#/components/schemas/Cat', dog: 'Dog' };
const pets = { oneOf: [ref('Cat'), ref('Dog')], discriminator: { propertyName: 'kind', mapping } };
const unmapped = { ...pets, discriminator: { propertyName: 'kind' } };
const Pet = { type: 'object', required: ['kind'], properties: { kind: text, name: text } };
const extending = (base: object) => ({
  Pet: { ...Pet, ...base },
  Cat: { allOf: [ref('Pet'), { type: 'object', properties: { meow: flag } }] },
  Dog: { allOf: [ref('Pet'), { type: 'object', properties: { bark: flag } }] },
});
const cat = { kind: 'cat', meow: true };
const dog = { kind: 'dog', bark: true };
const mixed = { kind: 'cat', bark: true };
const bird = { kind: 'bird' };
const named = (kind: string, more: object = {}) => ({ kind, ...more });
const owner = { type: 'object', properties: { id: text } };

interface Row {
  readonly schema: object;
  readonly components?: object;
  readonly takes: readonly unknown[];
  readonly refuses: readonly unknown[];
}

const many = Array.from({ length: 40 }, (_, at) => `Kind${at}`);
const manyKinds = Object.fromEntries(
  many.map((name) => {
    const properties = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`${name}_${at}`, text]));
    return [name, { allOf: [ref('Pet'), { type: 'object', properties }] }];
  }),
);

const ROWS: Readonly<Record<string, Row>> = {
  'a choice with a mapping': { schema: pets, takes: [cat, dog, { kind: 'dog' }], refuses: [mixed, bird, {}] },
  'a choice without a mapping': {
    schema: unmapped,
    takes: [named('Cat', { meow: true }), named('Dog')],
    refuses: [cat, named('Cat', { bark: true })],
  },
  'a choice as items': {
    schema: { type: 'array', items: pets },
    takes: [[], [cat, dog]],
    refuses: [[mixed]],
  },
  'a choice as a member of a map': {
    schema: { type: 'object', additionalProperties: pets },
    takes: [{ a: cat }],
    refuses: [{ a: mixed }],
  },
  'a choice by anyOf': {
    schema: { anyOf: [ref('Cat'), ref('Dog')], discriminator: { propertyName: 'kind', mapping } },
    takes: [cat, dog],
    refuses: [mixed],
  },
  'a choice beside members': {
    schema: { type: 'object', properties: { name: text }, ...pets },
    takes: [{ ...cat, name: 'x' }],
    refuses: [{ ...mixed, name: 'x' }],
  },
  'a choice whose branches state their values': {
    schema: unmapped,
    components: {
      Cat: { ...Cat, properties: { ...Cat.properties, kind: { type: 'string', enum: ['cat', 'lion'] } } },
      Dog: { ...Dog, properties: { ...Dog.properties, kind: { const: 'dog' } } },
    },
    takes: [cat, named('lion', { meow: true }), dog],
    refuses: [mixed, named('Cat')],
  },
  'a choice of many': {
    schema: { properties: { more: text }, oneOf: many.map(ref), discriminator: { propertyName: 'kind' } },
    components: { Pet, ...manyKinds },
    takes: [{ kind: 'Kind7', Kind7_3: 'x', name: 'x', more: 'x' }, named('Kind39')],
    refuses: [{ kind: 'Kind7', Kind8_3: 'x' }, named('Kind40'), { kind: 'Kind7', less: 'x' }],
  },
  'a choice by a number': {
    schema: {
      ...pets,
      discriminator: { propertyName: 'kind', mapping: { '1': 'Cat', '2': 'Dog' } },
    },
    components: {
      Cat: { ...Cat, properties: { ...Cat.properties, kind: { type: 'integer' } } },
      Dog: { ...Dog, properties: { ...Dog.properties, kind: { type: 'integer' } } },
    },
    takes: [{ kind: 1, meow: true }, { kind: 2 }],
    refuses: [{ kind: 2, meow: true }, { kind: 3 }],
  },
  'a choice whose branches share values that nothing maps': {
    schema: { ...unmapped, discriminator: { propertyName: 'kind', mapping: { cat: 'elsewhere.yml#/Cat' } } },
    components: {
      Cat: { ...Cat, properties: { ...Cat.properties, kind: { enum: ['cat', 'dog'] } } },
      Dog: { ...Dog, properties: { ...Dog.properties, kind: { enum: ['cat', 'dog'] } } },
    },
    takes: [{ kind: 'cat' }, cat, dog],
    refuses: [bird, { ...cat, bark: true }, {}],
  },
  'a choice whose base is closed for the members of all': {
    schema: { type: 'object', additionalProperties: false, ...pets },
    takes: [cat, dog],
    refuses: [mixed, bird, { ...cat, more: 1 }],
  },
  'a choice of open schemas': {
    schema: pets,
    components: { Cat: { ...Cat, additionalProperties: true }, Dog: { ...Dog, additionalProperties: true } },
    takes: [cat, mixed],
    refuses: [bird, { kind: 'dog', bark: 'x' }],
  },
  'the base of what extends it': {
    schema: ref('Pet'),
    components: extending({ discriminator: { propertyName: 'kind', mapping } }),
    takes: [{ ...cat, name: 'x' }, dog],
    refuses: [mixed, bird, named('Pet')],
  },
  'the base without a mapping': {
    schema: { type: 'array', items: ref('Pet') },
    components: extending({ discriminator: { propertyName: 'kind' } }),
    takes: [[named('Cat', { meow: true, name: 'x' })]],
    refuses: [[named('Cat', { bark: true })]],
  },
  'a choice of what extends a base': {
    schema: { oneOf: [ref('Cat'), ref('Dog')] },
    components: extending({ discriminator: { propertyName: 'kind', mapping } }),
    takes: [{ ...cat, name: 'x' }, dog],
    refuses: [mixed, bird],
  },
  'one of what extends a base': {
    schema: ref('Cat'),
    components: extending({ discriminator: { propertyName: 'kind', mapping } }),
    takes: [{ ...cat, name: 'x' }],
    refuses: [{ ...cat, bark: true }],
  },
  'a tuple': {
    schema: { type: 'array', prefixItems: [{ type: 'number' }, text], items: false },
    takes: [[1, 'x'], [1]],
    refuses: [['x'], [1, 'x', 2]],
  },
  'a tuple in a member': {
    schema: {
      type: 'object',
      properties: { at: { type: 'array', prefixItems: [{ type: 'number' }, { type: 'number' }] } },
    },
    takes: [{ at: [1, 2] }, {}],
    refuses: [{ at: ['x', 2] }],
  },
  'a tuple of Pydantic': {
    schema: { type: 'array', maxItems: 2, minItems: 2, prefixItems: [text, { type: 'integer' }] },
    takes: [['x', 1]],
    refuses: [['x'], ['x', 1, 2]],
  },
  'nullable beside allOf': {
    schema: { nullable: true, allOf: [ref('Owner')] },
    takes: [null, { id: 'x' }],
    refuses: ['x', { it: 1 }],
  },
  'nullable beside several parts': {
    schema: {
      nullable: true,
      description: 'Whose',
      allOf: [ref('Owner'), { type: 'object', properties: { b: text } }],
    },
    takes: [null, { id: 'x', b: 'y' }],
    refuses: ['x', { c: 1 }],
  },
  'nullable beside oneOf': {
    schema: { nullable: true, oneOf: [text, { type: 'integer' }] },
    takes: [null, 'x', 7],
    refuses: [{}, true],
  },
  'nullable beside anyOf and a type': {
    schema: {
      type: 'string',
      nullable: true,
      anyOf: [
        { type: 'string', format: 'uuid' },
        { type: 'string', maxLength: 2 },
      ],
    },
    takes: [null, 'xx'],
    refuses: ['xxx'],
  },
  'nullable beside a reference': { schema: { nullable: true, ...ref('Owner') }, takes: [null, {}], refuses: [1] },
  'nullable beside a choice with a discriminator': {
    schema: { nullable: true, ...pets },
    takes: [null, cat],
    refuses: [mixed],
  },
  'nullable beside allOf of an enum': {
    schema: { nullable: true, allOf: [{ type: 'string', enum: ['a'] }] },
    takes: [null, 'a'],
    refuses: ['b'],
  },
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
  for (const [title, { schema, components = {}, takes, refuses }] of Object.entries(ROWS))
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
