import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { configWarnings } from '../../src/config/warnings.ts';
import { load } from '../config/document/document.ts';
import { catalogueOf, object } from './resources.ts';

describe('a published pattern', () => {
  const warningsOf = (properties: object, more: object = {}): readonly string[] => {
    const config = load({
      'resources.report.backend': { method: 'POST', path: '/report' },
      'resources.report.inputSchema': object(properties, more),
    });
    return configWarnings(config).filter((warning) => warning.includes('inputSchema'));
  };

  for (const pattern of ['^\\d{3}\\-\\d{4}$', '^[\\w-.]+$', '^a]$', '^{a}$'])
    it(`has a warning when agents cannot compile it with the flag u: ${pattern}`, () => {
      const [warning, ...more] = warningsOf({ a: { type: 'array', items: { type: 'string', pattern } } });
      assert.deepEqual(more, []);
      assert.match(warning ?? '', /^resources\.report\.inputSchema\.properties\.a\.items\.pattern: agents .* u flag/);
    });
  it('has a warning as the name of properties, too', () =>
    assert.match(
      warningsOf({}, { patternProperties: { '^\\-': true } })[0] ?? '',
      /^resources\.report\.inputSchema\.patternProperties: agents/,
    ));
  for (const pattern of ['^\\d{3}-\\d{4}$', '^[\\w.-]+$', '^a\\]$'])
    it(`has no warning: ${pattern}`, () => assert.deepEqual(warningsOf({ a: { type: 'string', pattern } }), []));

  it('is published as written, beside the length that can be tried', () => {
    const schema = (pattern: string) => object({ a: { type: 'string', pattern } });
    for (const [pattern, maxLength] of [
      ['^(?:[a-z]|[a-z0-9]){64}$', 4_096],
      ['(?:[a-z]|[0-9]){500}!', 1_248],
    ] as const) {
      const [listed] = catalogueOf(schema(pattern)).listed;
      assert.deepEqual(listed?.inputSchema?.['properties'], { a: { type: 'string', pattern, maxLength } });
    }
  });
});
