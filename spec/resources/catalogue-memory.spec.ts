import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createCompiler } from '../../src/resources/schemas/ajv.ts';
import { liveBytes } from '../support/live-bytes.ts';

const ROUNDS = 14;
/** What the schemas of all rounds take is more than twice as much. */
const MOST_BYTES = 4 * 1024 * 1024;
const SCHEMAS = Array.from({ length: 30 }, (_, resource) => ({
  type: 'object',
  properties: Object.fromEntries(
    Array.from({ length: 15 }, (_, member) => [
      `member_${resource}_${member}`,
      { type: 'string', minLength: 1, maxLength: 10 + member },
    ]),
  ),
  additionalProperties: false,
}));

it('keeps nothing of the schemas of a configuration that another one has replaced', () => {
  const bytesAfter = (rounds: number): number => {
    for (let round = 0; round < rounds; round += 1) {
      const compile = createCompiler();
      for (const schema of SCHEMAS) {
        const { first, all } = compile(structuredClone(schema));
        assert.ok(!first()({ unknown: 1 }) && !all()({ unknown: 1 }));
      }
    }
    return liveBytes();
  };
  const before = bytesAfter(2);
  assert.ok(bytesAfter(ROUNDS) - before < MOST_BYTES);
});
