import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { createEngine } from '../../../src/resources/schemas/engine.ts';

/** Characters of one and of two units, also halves of the latter. */
const unit = fc.constantFrom('a', 'é', '漢', '😀', '\ud83d', '\ude00');

describe('the bounds of the length of a text', () => {
  it('are judged as the original judges them, at every length near them', () => {
    const engines = [createEngine({ allErrors: true }), new Ajv2020({ allErrors: true })];
    for (const bound of [0, 1, 2, 5]) {
      const [own, original] = engines.map((engine) =>
        engine.compile({ type: 'string', minLength: bound, maxLength: bound }),
      );
      fc.assert(
        fc.property(fc.string({ unit, maxLength: 2 * bound + 2 }), (text) => {
          assert.equal(own?.(text), original?.(text), JSON.stringify(text));
          const said = [own, original].map((validator) =>
            (validator?.errors ?? []).map(({ keyword, message, params, schemaPath }) => ({
              keyword,
              message,
              params,
              schemaPath,
            })),
          );
          assert.deepEqual(said[0], said[1]);
        }),
        { numRuns: 300 },
      );
    }
  });

  it('do not count the characters of a text that is short enough anyway', () => {
    const most = 1_000;
    const validate = createEngine({ allErrors: false }).compile({ type: 'string', maxLength: most });
    const counted: number[] = [];
    const { codePointAt } = String.prototype;
    String.prototype.codePointAt = function count(at) {
      counted.push(at);
      return codePointAt.call(this, at);
    };
    try {
      for (const length of [most, 2 * most + 1]) validate('a'.repeat(length));
      assert.equal(counted.length, 0);
      assert.equal(validate('😀'.repeat(most)), true);
      assert.equal(counted.length, most);
    } finally {
      String.prototype.codePointAt = codePointAt;
    }
  });
});
