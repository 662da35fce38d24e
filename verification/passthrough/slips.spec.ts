import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { growths } from './guard-cost.ts';
import { harmlessCases, measureHarmless } from './harmless.ts';
import { type Merchant, startMerchant } from './merchant.ts';
import { behind, casesOf, caseText, MERCHANTS, measure } from './slips.ts';
import { spellings } from './spellings.ts';

const SEED = 7;
/** `main.ts` tries each spelling, with every method, and combinations of them. */
const EVERY = 5;
const cases = casesOf(
  spellings(1, SEED).filter((_spelling, at) => at % EVERY === 0),
  ['GET', 'POST'],
);
const harmless = harmlessCases(200, SEED);

for (const kind of MERCHANTS)
  describe(`what is sold by a merchant with ${kind.name}`, () => {
    let merchant: Merchant;
    before(async () => {
      merchant = await startMerchant(kind);
    });
    after(() => merchant.close());

    it('runs unpaid where nothing stands in front of it', async () => {
      const { executed } = await measure(merchant, merchant.port, cases);
      assert.ok(executed.length > 0);
    });

    it('never runs unpaid behind the gateway, in any spelling', async () => {
      const outcome = await behind(merchant, (port) => measure(merchant, port, cases));
      assert.deepEqual(outcome.executed.map(caseText), []);
      assert.deepEqual(outcome.unanswered.map(caseText), []);
      assert.ok(outcome.arrived > 0, 'nothing passes at all');
    });

    it('keeps nothing else from passing with the bytes of its target', async () => {
      const outcome = await behind(merchant, (port) => measureHarmless(merchant, port, harmless));
      const { refused, changed, passedInVain } = outcome;
      assert.deepEqual(
        [refused, changed, passedInVain].map((some) => some.map(caseText)),
        [[], [], []],
      );
      assert.equal(outcome.unchanged + outcome.refusedByRule.length, harmless.length);
    });
  });

describe('the spellings', () => {
  it('are at least 3,000, all different, and the same for the same seed', () => {
    const some = spellings(3_600, SEED);
    assert.equal(some.length, 3_600);
    assert.equal(new Set(some.map((spelling) => JSON.stringify(spelling))).size, 3_600);
    assert.deepEqual(spellings(3_600, SEED), some);
    assert.notDeepEqual(spellings(3_600, SEED + 1), some);
  });
});

describe('the guard of sold paths', () => {
  for (const { name, growth } of growths())
    it(`takes no more than its share longer for eight times as many ${name}`, () =>
      assert.ok(growth < 24, `${growth}`));
});
