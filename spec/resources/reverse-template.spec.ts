import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../src/json/json.ts';
import { buildRequest } from '../../src/resources/backend-request.ts';
import { type AddressedRequest, type ReadInput, reverseTemplate } from '../../src/resources/reverse-template.ts';
import type { ResourceConfig } from '../../src/resources/settings.ts';
import { readTemplate } from '../../src/resources/url-template.ts';

function backendOf(path: string, method: 'GET' | 'POST' = 'GET'): ResourceConfig['backend'] {
  return {
    method,
    path,
    headers: {},
    contentType: 'application/json',
    inputBindings: undefined,
    timeoutMs: 1_000,
    maxResponseBytes: 1_000,
    idempotent: true,
    relayStatuses: { sold: [], unpaid: [] },
    strictQuery: false,
  };
}

function schemaOf(properties: JsonObject): JsonObject {
  return { type: 'object', properties };
}

const REPORT = {
  backend: backendOf('/reports/{city}?format=json'),
  inputSchema: schemaOf({
    city: { type: 'string' },
    days: { type: 'integer' },
    factor: { type: 'number' },
    full: { type: 'boolean' },
    tags: { type: 'array', items: { type: 'string' } },
  }),
};

function reader(resource: Parameters<typeof reverseTemplate>[0]) {
  const reversal = reverseTemplate(resource);
  assert.ok(reversal.ok, reversal.ok ? '' : reversal.message);
  return (target: string, body?: JsonObject): ReadInput => {
    const [path = '', query = ''] = target.split('?');
    const request: AddressedRequest = { path, query, body };
    return reversal.address.read(request);
  };
}

function inputOf(read: ReadInput): unknown {
  return read.ok ? read.input : (read.problem ?? 'another address');
}

describe('the input that an address holds', () => {
  const read = reader(REPORT);

  for (const [title, optional] of Object.entries({
    'FastAPI writes Optional': { anyOf: [{ type: 'integer' }, { type: 'null' }], title: 'N' },
    'types are listed': { type: ['integer', 'null'] },
    'OpenAPI 3.0 is nullable': { type: ['integer', 'null'], enum: [7, null] },
    'a list is optional': { anyOf: [{ type: 'array', items: { type: 'integer' } }, { type: 'null' }] },
  }))
    it(`is read where ${title}`, () => {
      const optionals = reader({ backend: backendOf('/x'), inputSchema: schemaOf({ n: optional }) });
      const read = inputOf(optionals('/x?n=7')) as { n: unknown };
      assert.deepEqual([read.n].flat(), [7]);
      assert.deepEqual(inputOf(optionals('/x')), {});
    });

  for (const [target, input] of [
    ['/reports/Berlin', { city: 'Berlin' }],
    ['/reports/Z%C3%BCrich?days=7&full=true&factor=1.5', { city: 'Zürich', days: 7, full: true, factor: 1.5 }],
    ['/reports/a+b?tags=a+b&tags=c%2Bd', { city: 'a+b', tags: ['a b', 'c+d'] }],
    ['/reports/x?tags=one', { city: 'x', tags: ['one'] }],
    ['/reports/x?format=json&utm_source=mail&&days=-3', { city: 'x', days: -3 }],
    ['/reports/a:b,c', { city: 'a:b,c' }],
  ] as const)
    it(`of ${target} is ${JSON.stringify(input)}`, () => assert.deepEqual(inputOf(read(target)), input));

  for (const [target, path, message] of [
    ['/reports/x?days=7&days=8', '$.days', 'must not be repeated'],
    ['/reports/x?days=%2B1', '$.days', 'must be an integer'],
    ['/reports/x?days=0x10', '$.days', 'must be an integer'],
    ['/reports/x?days=+1', '$.days', 'must be an integer'],
    ['/reports/x?days=9007199254740993', '$.days', 'must be an integer'],
    ['/reports/x?days=01', '$.days', 'must be an integer'],
    ['/reports/x?factor=1e400', '$.factor', 'must be a number'],
    ['/reports/x?full=1', '$.full', 'must be a boolean'],
    ['/reports/x?format=xml', '$.format', 'must be json or absent'],
    ['/reports/x?__proto__=1', '$.__proto__', 'is not an input of this resource'],
    ['/reports/x?tags=%ff', '$', 'is not percent-encoded UTF-8 without control characters'],
    ['/reports/x?tags=%00', '$', 'is not percent-encoded UTF-8 without control characters'],
    ['/reports/a%2fb', '$.city', 'is not a legal path parameter'],
    ['/reports/100%25', '$.city', 'is not a legal path parameter'],
    ['/reports/%2e%2e', '$.city', 'is not a legal path parameter'],
    ['/reports/', '$.city', 'must not be empty'],
    ['/reports/%7Bcity%7D', '$.city', 'is not a legal path parameter'],
    ['/reports/%fc', '$.city', 'is not a legal path parameter'],
  ] as const)
    it(`of ${target} is refused: ${path} ${message}`, () => {
      const result = read(target);
      assert.ok(!result.ok && result.problem !== undefined);
      assert.deepEqual([result.problem.path, result.problem.message], [path, message]);
    });

  for (const target of ['/Reports/x', '/reports/x/', '/report/x', '/%72eports/x'])
    it(`is not at ${target}`, () => assert.equal(inputOf(read(target)), 'another address'));

  it('has no names beyond the declared ones where the query is strict', () => {
    const result = reader({ ...REPORT, backend: { ...REPORT.backend, strictQuery: true } })(
      '/reports/x?utm_source=mail',
    );
    assert.ok(!result.ok);
    assert.equal(result.problem?.path, '$.utm_source');
  });

  it('has the members of a body, and none of the address among them', () => {
    const order = reader({
      backend: backendOf('/orders/{id}', 'POST'),
      inputSchema: schemaOf({ id: { type: 'integer' } }),
    });
    assert.deepEqual(inputOf(order('/orders/7', { note: 'hi' })), { id: 7, note: 'hi' });
    const twice = order('/orders/7', { id: 8 });
    assert.ok(!twice.ok);
    assert.equal(twice.problem?.path, '$.id');
  });

  it('is never in the body of a GET', () => {
    const result = read('/reports/x', {});
    assert.ok(!result.ok);
    assert.equal(result.problem?.keyword, 'body');
  });
});

describe('a template that cannot be reversed', () => {
  const string = { type: 'string' };
  for (const [path, message] of [
    ['/reports/:region', /has :region, which is ordinary text here: a parameter is written \{region\}/],
    ['/reports/*', /has a \*, which is ordinary text here/],
    ['/reports//x', /has \/\/, ; or an encoded separator/],
    ['/reports;v=1/x', /has \/\/, ; or an encoded separator/],
    ['/berichte%2Ffoo', /has \/\/, ; or an encoded separator/],
  ] as const)
    it(`is ${path}, whose notation or spelling servers do not share`, () => {
      const reversal = reverseTemplate({ backend: backendOf(path), inputSchema: schemaOf({}) });
      assert.match(reversal.ok ? '' : reversal.message, message);
    });
  for (const [path, properties, message] of [
    ['/r/{a}-{b}', { a: string, b: string }, /two parameters in one segment/],
    ['/r/{a}{b}', { a: string, b: string }, /two parameters in one segment/],
    ['/r/{a}', { a: {} }, /one text form for a/],
    ['/r/{a}', { a: { type: ['string', 'integer'] } }, /one text form for a/],
    ['/r/{a}', { a: { type: 'array', items: string } }, /whose type is a list/],
    ['/r', { q: { type: 'object' } }, /one text form for q/],
    ['/r', { q: { type: 'array', items: { type: 'array' } } }, /one text form for q/],
    ['/r', { q: { enum: ['1', 1] } }, /one text form for q/],
    ['/r', { 'q[]': string }, /brackets/],
    ['/r?q=1', { q: string }, /fixed query/],
  ] as const)
    it(`${path} with ${JSON.stringify(properties)} is refused with the reason`, () => {
      const reversal = reverseTemplate({ backend: backendOf(path), inputSchema: schemaOf(properties) });
      assert.ok(!reversal.ok);
      assert.match(reversal.message, message);
    });

  const bindings = { path: [], query: ['q'], body: [], styles: new Map() };
  for (const [title, change] of [
    ['styles', { inputBindings: { ...bindings, styles: new Map([['q', 'comma']] as const) } }],
    ['a whole body', { inputBindings: { ...bindings, body: 'q' } }],
    ['a media type', { contentType: 'application/x-www-form-urlencoded' }],
  ] as const)
    it(`a template with ${title} is refused`, () => {
      const backend = { ...backendOf('/r', 'POST'), ...change };
      const reversal = reverseTemplate({ backend, inputSchema: schemaOf({ q: string }) });
      assert.ok(!reversal.ok);
      assert.match(reversal.message, /not read back/);
    });
});

describe('what is read and built again', () => {
  const resources = [
    REPORT,
    {
      backend: backendOf('/a/{x}:{y}/b/{n}'),
      inputSchema: schemaOf({ x: { type: 'string' }, y: { type: 'string' }, n: { type: 'number' } }),
    },
    {
      backend: backendOf('/a/{x},:{y}.csv'),
      inputSchema: schemaOf({
        x: { type: 'string' },
        y: { type: 'boolean' },
        q: { type: 'array', items: { type: 'integer' } },
      }),
    },
  ];
  const value = (schema: JsonObject): fc.Arbitrary<unknown> => {
    switch (schema['type']) {
      case 'integer':
        return fc.maxSafeInteger();
      case 'number':
        return fc.double({ noNaN: true, min: -1e15, max: 1e15 }).map((n) => (Object.is(n, -0) ? 0 : n));
      case 'boolean':
        return fc.boolean();
      case 'array':
        return fc.array(value(schema['items'] as JsonObject), { minLength: 1, maxLength: 3 });
      default:
        return fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 });
    }
  };
  for (const resource of resources)
    it(`is the same address of ${resource.backend.path}`, () => {
      const reading = readTemplate(resource.backend.path);
      assert.ok(reading.ok);
      const read = reader(resource);
      const properties = resource.inputSchema['properties'] as Record<string, JsonObject>;
      const required = new Set(reading.template.parameters);
      const inputs = fc.record(
        Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, value(schema)])),
        { requiredKeys: [...required] },
      );
      let rounds = 0;
      fc.assert(
        fc.property(inputs, (input) => {
          const built = buildRequest(resource.backend, reading.template, input as JsonObject, undefined, new Set());
          if (!built.ok) return;
          const again = read(built.request.path);
          if (!again.ok) return;
          rounds += 1;
          assert.deepEqual({ ...again.input }, { ...(input as object) });
          const rebuilt = buildRequest(resource.backend, reading.template, again.input, undefined, new Set());
          assert.ok(rebuilt.ok);
          assert.equal(rebuilt.request.path, built.request.path);
        }),
        { numRuns: 2_000 },
      );
      assert.ok(rounds > 1_000, `${rounds} of 2,000 inputs were read back`);
    });
});
