import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_SUBSCHEMAS } from '../../src/resources/schemas/schema-check.ts';
import { faultsOf, object } from './resources.ts';

const text = { type: 'string' };
const conditional = (condition: object, consequence: object): object =>
  Object.fromEntries([
    ['if', condition],
    ['then', consequence],
  ]);

describe('an input schema is refused at start for', () => {
  /** Of the property `a`. */
  const PROPERTY: readonly (readonly [string, object, string, RegExp])[] = [
    ['an unknown keyword', { type: 'string', maxLenght: 3 }, 'maxLenght', /did you mean maxLength/],
    ['a keyword of another dialect', { type: 'string', nullable: true }, 'nullable', /not a keyword that is enforced/],
    [
      'a keyword that is never asserted',
      { type: 'string', contentEncoding: 'base64' },
      'contentEncoding',
      /not a keyword/,
    ],
    ['an unknown format', { type: 'string', format: 'iban' }, 'format', /not a format/],
    ['a number format', { type: 'string', format: 'int32' }, 'format', /not a format/],
    ['a keyword that has no effect', { type: 'integer', maxLength: 3 }, 'maxLength', /for type string/],
    ['a keyword that may not apply', { maxLength: 3 }, 'maxLength', /needs "type: string"/],
    ['a value of the wrong shape', { type: 'string', minLength: -1 }, 'minLength', /not valid JSON Schema/],
    ['a wrong type name', { type: 'text' }, 'type', /must be one of object, array/],
    ['a remote reference', { $ref: 'https://example.com/s.json' }, '$ref', /in this document/],
    ['a reference to nothing', { $ref: '#/$defs/none' }, '$ref', /in this document/],
    ['a reference to itself', { $ref: '#' }, '$ref', /recursive/],
    ['a dynamic reference', { $dynamicRef: '#x' }, '$dynamicRef', /not a keyword/],
    ['a reserved name deep inside', object({ _authorization: text }), 'properties', /reserved/],
    ['hidden characters', { type: 'string', description: 'x\u202ey' }, 'description', /bidirectional/],
    ['a look-ahead', { type: 'string', pattern: '^(?!x)' }, 'pattern', /look-around: split it into two properties/],
    [
      'too many steps',
      { type: 'string', pattern: '(?:[a-z]{64}-){40}' },
      'pattern',
      /takes 2,600 steps .*, at most 2,400: shorten/,
    ],
    ['a broken pattern', { type: 'string', pattern: '(' }, 'pattern', /regular expression/],
  ];
  const cycle = { $defs: { x: { $ref: '#/$defs/y' }, y: { $ref: '#/$defs/x' } } };
  const draft = { ...object({}), $schema: 'http://json-schema.org/draft-07/schema#' };
  const ROWS: readonly (readonly [string, object, string, RegExp])[] = [
    ...PROPERTY.map(([title, a, path, message]) => [title, object({ a }), `properties.a.${path}`, message] as const),
    ['a type other than object', { type: 'string' }, 'type', /must be object/],
    ['a cycle of references', object({ a: { $ref: '#/$defs/x' } }, cycle), '$defs.y.$ref', /recursive/],
    ['$async', { ...object({}), $async: true }, '$async', /not a keyword/],
    ['another draft', draft, '$schema', /2020-12/],
    ['a reserved name', object({ _payment: text }), 'properties', /_payment.*reserved/],
    ['a required reserved name', { ...object({}), required: ['_payment'] }, 'required', /reserved/],
    ['an undeclared required name', object({ city: text }, { required: ['town'] }), 'required', /lists town/],
    [
      'a back-reference',
      { type: 'object', patternProperties: { '(a)\\1': text } },
      'patternProperties',
      /back-reference/,
    ],
  ];
  for (const [title, schema, path, message] of ROWS)
    it(title, () => {
      const found = faultsOf(schema);
      const fault = found.find((candidate) => candidate.path === `inputSchema.${path}`);
      assert.ok(fault, JSON.stringify(found));
      assert.match(fault.message, message);
    });

  it('references that multiply its size, quickly', () => {
    const $defs: Record<string, object> = { d0: text };
    for (let level = 1; level <= 40; level += 1)
      $defs[`d${level}`] = { allOf: [{ $ref: `#/$defs/d${level - 1}` }, { $ref: `#/$defs/d${level - 1}` }] };
    const started = process.threadCpuUsage();
    const found = faultsOf(object({ a: { $ref: '#/$defs/d40' } }, { $defs }));
    assert.ok(found.some(({ message }) => message.includes(`${MAX_SUBSCHEMAS} schemas`)));
    assert.ok(process.threadCpuUsage(started).user < 1_000_000);
  });
  it('more schemas than the bound, and not for exactly as many', () => {
    const wide = (count: number) =>
      object(Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, text])));
    assert.deepEqual(faultsOf(wide(MAX_SUBSCHEMAS - 1)), []);
    assert.equal(faultsOf(wide(MAX_SUBSCHEMAS)).length, 1);
  });
  it('a look-ahead in the output schema, too', () => {
    const outputSchema = object({ a: { type: 'string', pattern: '(?=x)' } });
    const [fault] = faultsOf(object({}), {}, { outputSchema });
    assert.equal(fault?.path, 'outputSchema.properties.a.pattern');
  });
  it('allowSlowPattern, which no pattern needs', () => {
    const [fault] = faultsOf(object({}), {}, { allowSlowPattern: true });
    assert.deepEqual([fault?.path, fault?.message], ['allowSlowPattern', 'is not used here; remove it']);
  });
  it('nothing that 2020-12 allows', () =>
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
