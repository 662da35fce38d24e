import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { changed, load, problemsOfText } from '../../../spec/config/document/document.ts';
import { attack, proven } from '../catalogue.ts';

describe('texts and prices of a configuration', () => {
  for (const hidden of ['\u202e', '\u2066', '\u200b', '\u{e0041}', '\u0000', '\u001b[2J', '\ufeff'])
    attack(['A8', 'I1'], `a name or description with ${JSON.stringify(hidden)} is refused`, () => {
      for (const member of ['name', 'description']) {
        const problems = problemsOfText(JSON.stringify(changed({ [`resources.report.${member}`]: `Report${hidden}` })));
        assert.ok(
          problems.some(({ path }) => path.startsWith('resources.report')),
          `${member}: ${JSON.stringify(problems)}`,
        );
      }
    });

  const price = (amount: unknown) => changed({ 'resources.report.pricing.amount': amount });
  for (const amount of [
    '0',
    '0.0',
    '-1',
    '+1',
    '1.',
    '.5',
    '01',
    '1e-2',
    '1e400',
    '0x10',
    '1,5',
    '1_0',
    ' 1',
    '１',
    '0.0000004',
    '1.9999999',
    '1'.repeat(80),
    0.01,
    1e-7,
    null,
    ['0.01'],
    true,
  ])
    attack('X20', `a price of ${JSON.stringify(amount)} is refused at start, not rounded`, () => {
      assert.ok(problemsOfText(JSON.stringify(price(amount))).length > 0);
    });
  for (const [amount, units] of [
    ['1.005', 1_005_000n],
    ['0.000001', 1n],
    ['0.1', 100_000n],
    ['9007199254740993', 9_007_199_254_740_993_000_000n],
  ] as const)
    attack('X20', `a price of ${amount} is exactly ${units} units`, () => {
      const [resource] = load({ 'resources.report.pricing.amount': amount }).resources;
      assert.equal(resource?.pricing.type === 'fixed' && resource.pricing.units, units);
    });
  proven('X20', 'spec/payments/pricing/amount.spec.ts', 'reads any text as a second parser does, or refuses it');
});
