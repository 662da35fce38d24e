// biome-ignore-all lint/suspicious/noTemplateCurlyInString: titles as they are spelled there.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { changed, load, problemsOfText } from '../../../spec/config/document/document.ts';
import { attack, proven } from '../catalogue.ts';

describe('texts and prices of a configuration', () => {
  proven(['A8', 'I1'], 'spec/resources/schemas/text.spec.ts', 'refuses ${JSON.stringify(bad)}');
  attack(['A8', 'I1'], 'a name or description that hides text is refused', () => {
    for (const member of ['name', 'description']) {
      const problems = problemsOfText(JSON.stringify(changed({ [`resources.report.${member}`]: 'Report\u202e' })));
      assert.ok(
        problems.some(({ path }) => path.startsWith('resources.report')),
        `${member}: ${JSON.stringify(problems)}`,
      );
    }
  });

  for (const amount of ['0', '0.0', '1e400', '0.0000004', 0.01, 1e-7, null, ['0.01'], true])
    attack('X20', `a price of ${JSON.stringify(amount)} is refused at start, not rounded`, () => {
      const document = changed({ 'resources.report.pricing.amount': amount });
      assert.ok(problemsOfText(JSON.stringify(document)).length > 0);
    });
  attack('X20', 'a price beyond the integers of a double is exact', () => {
    const [resource] = load({ 'resources.report.pricing.amount': '9007199254740993' }).resources;
    assert.equal(resource?.pricing.type === 'fixed' && resource.pricing.units, 9_007_199_254_740_993_000_000n);
  });
  const amounts = 'spec/payments/pricing/amount.spec.ts';
  proven('X20', amounts, 'reads ${text.slice(0, 20)} with ${decimals} decimals exactly');
  proven('X20', amounts, 'refuses ${JSON.stringify(text.slice(0, 20))} with ${decimals} decimals as ${reason}');
  proven('X20', amounts, 'reads any text as a second parser does, or refuses it');
});
