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
      'with a pattern that looks ahead',
      object({ a: { type: 'string', pattern: '^(?!x)' } }),
      'inputSchema.properties.a.pattern',
      /look-around: split it into two properties/,
    ],
    [
      'with a pattern of too many steps',
      object({ a: { type: 'string', pattern: '(?:[a-z]{64}-){40}' } }),
      'inputSchema.properties.a.pattern',
      /takes 2,600 steps for each character, at most 2,400: shorten the counts/,
    ],
    [
      'with a back-reference in the name of a property',
      { type: 'object', patternProperties: { '(a)\\1': text } },
      'inputSchema.patternProperties',
      /back-reference/,
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
    const started = process.threadCpuUsage();
    const found = faultsOf(object({ a: { $ref: '#/$defs/d40' } }, { $defs }));
    assert.ok(found.some(({ message }) => message.includes(`${MAX_SUBSCHEMAS} schemas`)));
    assert.ok(process.threadCpuUsage(started).user < 1_000_000);
  });
  it('on both sides of the number of schemas', () => {
    const wide = (count: number) =>
      object(Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, text])));
    assert.deepEqual(faultsOf(wide(MAX_SUBSCHEMAS - 1)), []);
    assert.equal(faultsOf(wide(MAX_SUBSCHEMAS)).length, 1);
  });
  it('and so is an output schema with a pattern that looks ahead: its text is the merchant’s, and matched in the same process', () => {
    const outputSchema = object({ a: { type: 'string', pattern: '(?=x)' } });
    const [fault] = faultsOf(object({}), {}, { outputSchema });
    assert.equal(fault?.path, 'outputSchema.properties.a.pattern');
  });
  it('and allowSlowPattern has gone: every pattern that is accepted is fast', () => {
    const [fault] = faultsOf(object({}), {}, { allowSlowPattern: true });
    assert.deepEqual([fault?.path, fault?.message], ['allowSlowPattern', 'is not used here; remove it']);
  });
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
