import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  CODE_LOOKUPS,
  CODE_TTL_MS,
  NO_CODE_TTL_MS,
  rememberCode,
} from '../../../../src/payments/x402/chain/wallet-signature.ts';

/** A chain that answers when told to. */
function chain() {
  const questions: { readonly address: string; readonly answer: PromiseWithResolvers<boolean> }[] = [];
  return {
    questions,
    lookup: (address: string) => {
      const answer = Promise.withResolvers<boolean>();
      questions.push({ address, answer });
      return answer.promise;
    },
  };
}

describe('whether a payer is a contract', () => {
  it('is asked once for ten minutes', async () => {
    let now = 0;
    let asked = 0;
    const hasCode = rememberCode(
      async () => {
        asked += 1;
        return true;
      },
      () => now,
    );
    assert.deepEqual([await hasCode('a'), await hasCode('a'), asked], [true, true, 1]);
    now = CODE_TTL_MS - 1;
    await hasCode('a');
    assert.equal(asked, 1);
    now = CODE_TTL_MS;
    await hasCode('a');
    assert.equal(asked, 2);
  });

  it('that is none is asked again soon: a wallet is deployed with its first payment', async () => {
    let now = 0;
    let deployed = false;
    const hasCode = rememberCode(
      async () => deployed,
      () => now,
    );
    assert.equal(await hasCode('a'), false);
    deployed = true;
    now = NO_CODE_TTL_MS - 1;
    assert.equal(await hasCode('a'), false);
    now = NO_CODE_TTL_MS;
    assert.equal(await hasCode('a'), true);
  });

  it('is one question for all who ask at the same time, and a failure is not remembered', async () => {
    const { lookup, questions } = chain();
    const hasCode = rememberCode(lookup);
    const both = Promise.allSettled([hasCode('a'), hasCode('a')]);
    assert.equal(questions.length, 1);
    questions[0]?.answer.reject(new Error('no answer'));
    assert.deepEqual(
      (await both).map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    const again = hasCode('a');
    questions[1]?.answer.resolve(false);
    assert.equal(await again, false);
  });

  it('is bounded, so that invented payers cannot use up the node', async () => {
    const { lookup, questions } = chain();
    const hasCode = rememberCode(lookup);
    const running = Array.from({ length: CODE_LOOKUPS }, (_, n) => hasCode(`payer ${n}`));
    await assert.rejects(hasCode('one too many'));
    for (const { answer } of questions) answer.resolve(false);
    await Promise.all(running);
    const after = hasCode('one too many');
    questions.at(-1)?.answer.resolve(true);
    assert.equal(await after, true);
  });
});
