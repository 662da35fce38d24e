import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { together } from '../../../../src/payments/x402/local/local-rail.ts';

describe('work that waits', () => {
  /** Rounds that end when the test says so. */
  const stage = () => {
    const rounds: { readonly items: readonly number[]; readonly end: PromiseWithResolvers<readonly string[]> }[] = [];
    const ask = together<number, string>(
      (items) => {
        const end = Promise.withResolvers<readonly string[]>();
        rounds.push({ items, end });
        return end.promise;
      },
      { atOnce: 2, most: 3 },
    );
    const end = (at: number): void => rounds[at]?.end.resolve(rounds[at].items.map(String));
    return { ask, rounds, end, taken: () => rounds.map(({ items }) => items) };
  };

  it('is done alone while few rounds run, and then all together up to a bound', async () => {
    const { ask, end, taken } = stage();
    const answers = [1, 2, 3, 4, 5, 6].map(ask);
    assert.deepEqual(taken(), [[1], [2]]);
    end(0);
    assert.equal(await answers[0], '1');
    assert.deepEqual(taken(), [[1], [2], [3, 4, 5]]);
    end(2);
    assert.deepEqual(await Promise.all(answers.slice(2, 5)), ['3', '4', '5']);
    assert.deepEqual(taken(), [[1], [2], [3, 4, 5], [6]]);
  });

  it('has the error of its round, and the next round begins all the same', async () => {
    const { ask, rounds, end } = stage();
    const answers = [1, 2, 3].map(ask);
    rounds[0]?.end.reject(new Error('broken'));
    await assert.rejects(answers[0] as Promise<string>, /broken/);
    end(2);
    assert.equal(await answers[2], '3');
  });
});
