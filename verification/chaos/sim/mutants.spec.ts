import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CRASH, casesOf, sweep } from './crashes.ts';
import { ALL_MUTANTS } from './mutants.ts';
import { type Mutant, runSeed } from './seeds.ts';

/** The laws must notice a wrong design within so many seeds. */
const WITHIN = 300;

async function caughtBySeeds(mutant: Mutant): Promise<readonly string[]> {
  for (let seed = 1; seed <= WITHIN; seed += 1) {
    const { violations } = await runSeed(seed, mutant);
    if (violations.length > 0) return violations;
  }
  return [];
}

/** Mutants that show only at one await are run with a crash at each of them. */
async function caughtByCrashes(mutant: Mutant): Promise<readonly string[]> {
  const cases = casesOf('remote', 'POST').filter(({ name }) => name.endsWith('merchant unwritten'));
  const { failures } = await sweep(cases, [CRASH], CRASH, mutant);
  return failures.flatMap(({ violations }) => violations);
}

describe('the simulator notices', () => {
  for (const mutant of ALL_MUTANTS)
    it(mutant.name, async () => {
      const violations = await (mutant.needsCrashes ? caughtByCrashes(mutant) : caughtBySeeds(mutant));
      assert.ok(
        violations.some((violation) => mutant.shows.test(violation)),
        `expected ${mutant.shows}, saw ${violations.join('; ') || 'nothing'}`,
      );
    });
});
