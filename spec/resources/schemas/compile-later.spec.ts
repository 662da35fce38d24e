import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { isObject, type Json, type JsonObject } from '../../../src/json/json.ts';
import { createCompiler, mayCompileLater } from '../../../src/resources/schemas/ajv.ts';
import { closeSchema } from '../../../src/resources/schemas/closed-objects.ts';
import { createEngine } from '../../../src/resources/schemas/engine.ts';
import { schemaFaults } from '../../../src/resources/schemas/schema-check.ts';

/** An object schema with one property. */
const around = (schema: Json, more: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties: { a: schema },
  ...more,
});

describe('a schema that is compiled when its first input comes', () => {
  const ORDINARY: Readonly<Record<string, JsonObject>> = {
    'a flat one': around({ type: 'string', pattern: '^a', format: 'email', maxLength: 9 }, { required: ['a'] }),
    'one with a reference': around({ $ref: '#/$defs/name' }, { $defs: { name: { type: 'string' } } }),
    'one with alternatives': around({ oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'number' } }] }),
    'one with a whole condition': around({ type: 'string', if: { minLength: 3 }, else: { maxLength: 1 } }),
    'one with a tuple of any length': around({ type: 'array', prefixItems: [true] }),
  };
  for (const [title, schema] of Object.entries(ORDINARY))
    it(`is ${title}`, () => assert.ok(mayCompileLater(closeSchema(schema))));

  const LARGE = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`m${index}`, { type: 'string' }]));
  const AT_START: Readonly<Record<string, JsonObject>> = {
    'one with many schemas': { type: 'object', properties: LARGE },
    'one whose references lead to many schemas': {
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`r${index}`, { $ref: '#/$defs/d' }])),
      $defs: { d: { type: 'object', properties: Object.fromEntries(Object.entries(LARGE).slice(0, 9)) } },
    },
    'one with many patterns and formats': {
      type: 'object',
      properties: Object.fromEntries(
        Array.from({ length: 20 }, (_, at) => [`p${at}`, { type: 'string', pattern: '^a', format: 'email' }]),
      ),
    },
    'one with long lists of names that others depend on': {
      type: 'object',
      additionalProperties: { type: 'string' },
      dependentRequired: {
        a: Array.from({ length: 200 }, (_, at) => `n${at}`),
        b: Array.from({ length: 200 }, (_, at) => `m${at}`),
      },
    },
    'one with long lists of values': {
      type: 'object',
      properties: Object.fromEntries(
        Array.from({ length: 6 }, (_, list) => [`e${list}`, { enum: Array.from({ length: 100 }, (_, at) => at) }]),
      ),
    },
  };
  for (const [title, schema] of Object.entries(AT_START))
    it(`is not ${title}, which is compiled at start`, () => assert.ok(!mayCompileLater(closeSchema(schema))));
});

describe('the validator of a schema', () => {
  it('comes at start with the first hundred of them, else with the first input, once', () => {
    const compile = createCompiler();
    const all = Array.from({ length: 101 }, (_, at) => compile(closeSchema(around({ const: at }))));
    assert.deepEqual(
      [all[0], all[99], all[100], all[100]].map((validators) => validators?.compile()),
      [false, false, true, false],
    );
    assert.equal(all[100]?.first()({ a: 100 }), true);
    const asked = compile(closeSchema(around({ const: 101 })));
    asked.first();
    assert.equal(asked.compile(), false);
  });
});

describe('a schema that only its compilation refuses', () => {
  const REFUSED: Readonly<Record<string, readonly [JsonObject, RegExp]>> = {
    'a condition without a branch': [around({ type: 'string', if: { minLength: 3 } }), /"if" without "then"/],
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    'a branch without a condition': [around({ type: 'string', then: { minLength: 3 } }), /"then" without "if"/],
    'a count of nothing': [around({ type: 'array', minContains: 2 }), /"minContains" without "contains"/],
    'counts that no list has': [
      around({ type: 'array', contains: { type: 'string' }, minContains: 3, maxContains: 2 }),
      /"minContains" > "maxContains"/,
    ],
    'no value at all': [around({ enum: [] }), /enum must have non-empty array/],
    'a name that a pattern matches too': [
      { ...around({ type: 'string' }), patternProperties: { '^a': { type: 'string' } } },
      /property a matches pattern/,
    ],
    'a reference to a list of names': [around({ $ref: '#/required' }, { required: ['a'] }), /unknown keyword/],
    'a reference to a value that no meta-schema has seen': [
      {
        type: 'object',
        properties: {
          a: { type: 'object', default: { type: 'string', minLength: 'x' } },
          b: { $ref: '#/properties/a/default' },
        },
      },
      /minLength value must be/,
    ],
    'a name whose reference has an escape': [
      around({ $ref: '#/$defs/a%41' }, { $defs: { 'a%41': { type: 'string' } } }),
      /can't resolve reference/,
    ],
  };
  for (const [title, [schema, message]] of Object.entries(REFUSED))
    it(`is refused at start: ${title}`, () => {
      assert.deepEqual(schemaFaults(schema, 'inputSchema'), []);
      const engine = createEngine({ allErrors: false });
      assert.throws(() => engine.compile(closeSchema(schema)), message);
      assert.ok(!mayCompileLater(closeSchema(schema)));
    });

  it('is none of those that are compiled later, whatever they are made of', () => {
    const engines = [createEngine({ allErrors: false }), createEngine({ allErrors: true })];
    let later = 0;
    fc.assert(
      fc.property(OBJECT_SCHEMA, (schema) => {
        if (schemaFaults(schema, 'inputSchema').length > 0) return;
        const closed = closeSchema(schema);
        if (!mayCompileLater(closed)) return;
        later += 1;
        for (const engine of engines) engine.compile(closed);
      }),
      { numRuns: 250 },
    );
    assert.ok(later > 25, `only ${later} schemas were tried`);
  });
});

/** Keywords of each type in combinations that the checks of a schema let through now and then. */
const NAME = fc.constantFrom('a', 'b', 'a-b', 'constructors', "it's", '$defs', '0');
const count = fc.nat({ max: 3 });
const { schema: SCHEMA } = fc.letrec<{ schema: Json }>((tie) => {
  const inner = tie('schema');
  const some = fc.array(inner, { minLength: 1, maxLength: 2 });
  const named = fc.dictionary(NAME, inner, { maxKeys: 3 });
  const keywords = (type: string, rules: Readonly<Record<string, fc.Arbitrary<Json>>>): fc.Arbitrary<Json> =>
    fc.record({ type: fc.constant<Json>(type), ...rules }, { requiredKeys: ['type'] }) as fc.Arbitrary<Json>;
  return {
    schema: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      keywords('string', {
        pattern: fc.constantFrom('^a', 'b$', '[a-c]{2}'),
        format: fc.constantFrom('email', 'date-time', 'uri'),
        minLength: count,
        maxLength: count,
      }),
      keywords('number', { minimum: count, exclusiveMaximum: count, multipleOf: fc.constantFrom<Json>(1, 0.5) }),
      fc.record({ enum: fc.array(fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<Json>, { maxLength: 3 }) }),
      fc.record({ const: fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<Json> }),
      fc.constant<Json>({ $ref: '#/$defs/a' }),
      fc.boolean(),
      keywords('array', {
        items: inner,
        prefixItems: some,
        contains: inner,
        minContains: count,
        maxContains: count,
        minItems: count,
        maxItems: count,
        uniqueItems: fc.boolean(),
      }),
      keywords('object', {
        properties: named,
        patternProperties: fc.dictionary(fc.constantFrom('^a', '-b$'), inner, { maxKeys: 2 }),
        additionalProperties: inner,
        propertyNames: fc.constant<Json>({ maxLength: 5 }),
        dependentRequired: fc.constant<Json>({ a: ['b'] }),
        dependentSchemas: named,
        maxProperties: count,
      }),
      fc.record({ anyOf: some, title: fc.constant('t') }, { requiredKeys: ['anyOf'] }),
      fc.record({ allOf: some, oneOf: some }, { requiredKeys: ['allOf'] }),
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
      fc.record({ if: inner, then: inner, else: inner }, { requiredKeys: ['if'] }),
      fc.record({ not: inner, default: fc.constant(1), readOnly: fc.boolean() }, { requiredKeys: ['not'] }),
    ) as fc.Arbitrary<Json>,
  };
});
const OBJECT_SCHEMA: fc.Arbitrary<JsonObject> = fc
  .record({ properties: fc.dictionary(NAME, SCHEMA, { maxKeys: 4 }), a: SCHEMA })
  .map(({ properties, a }) => ({ type: 'object', properties, $defs: { a } }))
  .filter((schema) => isObject(schema));
