import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { differingHeader } from '../../src/adapters/mcp/parse-request.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { mirroredParameters, mirrorFaults } from '../../src/resources/tool-form.ts';

const mirror = (name: string, type = 'string') => ({ type, 'x-mcp-header': name });
const object = (properties: JsonObject): JsonObject => ({ type: 'object', properties });

describe('arguments that clients mirror in headers', () => {
  it('are found at any depth of properties', () => {
    const schema = object({ region: mirror('Region'), at: object({ day: mirror('Day', 'integer') }) });
    assert.deepEqual(mirrorFaults(schema, 'inputSchema'), []);
    assert.deepEqual(mirroredParameters(schema), [
      { header: 'mcp-param-region', path: ['region'], type: 'string' },
      { header: 'mcp-param-day', path: ['at', 'day'], type: 'integer' },
    ]);
  });

  const refused: Readonly<Record<string, JsonObject>> = {
    'a number': object({ price: mirror('Price', 'number') }),
    'an object': object({ price: { ...mirror('Price', 'object'), properties: {} } }),
    'no name': object({ a: mirror('') }),
    'a name with a space': object({ a: mirror('My Header') }),
    'one name twice, also in another case': object({ a: mirror('Same'), b: mirror('same') }),
    'with the prefix of clients': object({ a: mirror('Mcp-Param-A') }),
    'inside a list': object({ list: { type: 'array', items: mirror('Item') } }),
    'inside a composition': { ...object({}), allOf: [object({ a: mirror('A') })] },
    'inside a condition': { ...object({}), if: object({ a: mirror('A') }) },
    'in a definition': { ...object({}), $defs: { a: mirror('A') } },
    'on the input itself': { ...object({}), ...mirror('All', 'object') },
  };
  for (const [what, schema] of Object.entries(refused))
    it(`have a fault: ${what}`, () => {
      const faults = mirrorFaults(schema, 'inputSchema');
      assert.equal(faults.length, 1);
      assert.match(faults[0]?.path ?? '', /x-mcp-header/);
    });
});

describe('headers beside the arguments', () => {
  const parameters = mirroredParameters(
    object({ region: mirror('Region'), count: mirror('Count', 'integer'), all: mirror('All', 'boolean') }),
  );
  const check = (input: JsonObject, headers: Readonly<Record<string, string>>): string | undefined =>
    differingHeader(parameters, input, (name) => {
      const value = headers[name];
      return value === undefined ? { kind: 'absent' } : { kind: 'single', value };
    });

  it('agree as text, as number and as boolean', () => {
    const headers = { 'mcp-param-region': 'us', 'mcp-param-count': '42.0', 'mcp-param-all': 'true' };
    assert.equal(check({ region: 'us', count: 42, all: true }, headers), undefined);
  });
  it('may be base64 between marks, and are literal when a mark is missing', () => {
    const encoded = (text: string): string => `=?base64?${Buffer.from(text).toString('base64')}?=`;
    assert.equal(check({ region: 'Hello, 世界' }, { 'mcp-param-region': encoded('Hello, 世界') }), undefined);
    assert.equal(check({ region: '=?base64?eA==' }, { 'mcp-param-region': '=?base64?eA==' }), undefined);
    assert.equal(check({ region: 'x' }, { 'mcp-param-region': '=?base64?eA?=' }), 'mcp-param-region');
    assert.equal(check({ region: 'x' }, { 'mcp-param-region': '=?BASE64?eA==?=' }), 'mcp-param-region');
  });
  it('are required for a value, and ignored for null or an absent argument', () => {
    assert.equal(check({ region: 'us' }, {}), 'mcp-param-region');
    assert.equal(check({ region: null }, {}), undefined);
    assert.equal(check({}, {}), undefined);
  });
  it('must not differ', () => {
    assert.equal(check({ region: 'us' }, { 'mcp-param-region': 'US' }), 'mcp-param-region');
    assert.equal(check({ count: 1 }, { 'mcp-param-count': '0x1' }), 'mcp-param-count');
    assert.equal(check({ all: false }, { 'mcp-param-all': 'False' }), 'mcp-param-all');
  });
});
