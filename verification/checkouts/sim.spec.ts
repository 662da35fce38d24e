import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CheckoutClaims } from '../../src/checkouts/claims.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openSqliteStore } from '../../src/store/sqlite/open.ts';
import { MUTANTS } from './mutants.ts';
import { report, runSeed } from './run.ts';

const RUNS = 300;
/** Runs of which each is made on the embedded store too. */
const STORED = 25;
/**
 * The laws must notice a wrong machine within this number of seeds: the rarest shows in one of 200.
 */
const WITHIN = 1_500;

describe('buyers, gateways that die and a faulty backend', () => {
  it(`${RUNS} seeds: one order for a session at most, one answer for a key, and an answer in the end`, async () => {
    const tally = new Map<string, number>();
    for (let seed = 1; seed <= RUNS; seed += 1) {
      const run = await runSeed(seed);
      if (run.violations.length > 0) assert.fail(report(await runSeed(seed, { traced: true })));
      for (const [what, times] of run.tally) tally.set(what, (tally.get(what) ?? 0) + times);
    }
    process.stdout.write(`${JSON.stringify({ sim: 'checkouts', runs: RUNS, ...Object.fromEntries(tally) })}\n`);
    // Runs without faults, or without answers, would prove nothing.
    for (const what of ['again', 'lease expired', 'fenced', 'unstored', 'session_busy', 'timeout', 'reset', 'status'])
      assert.ok((tally.get(what) ?? 0) > RUNS / 100, `${what}: ${tally.get(what) ?? 0}`);
    for (const from of ['backend', 'kept', 'session'])
      assert.ok((tally.get(`ended answered ${from}`) ?? 0) > RUNS / 10, from);
  });

  it('runs the same steps for the same seed', async () => {
    const [one, other] = [await runSeed(7, { traced: true }), await runSeed(7, { traced: true })];
    assert.ok(one.trace.length > 10);
    assert.deepEqual(other.trace, one.trace);
  });
});

describe('the embedded store', () => {
  it('takes the same steps as the table of claims, seed by seed', async () => {
    for (let seed = 1; seed <= STORED; seed += 1) {
      const stores: Store[] = [];
      const openClaims = (now: () => number): CheckoutClaims => {
        const store = openSqliteStore({
          path: ':memory:',
          limits: { eventsMaxLength: 10, receiptsMaxLength: 10 },
          now,
        });
        stores.push(store);
        return store.checkouts;
      };
      const stored = await runSeed(seed, { traced: true, openClaims });
      for (const store of stores) await store.close();
      const { trace, violations } = await runSeed(seed, { traced: true });
      assert.deepEqual(stored.trace, trace);
      assert.deepEqual(violations, []);
    }
  });
});

describe('the simulation notices', () => {
  for (const mutant of MUTANTS)
    it(mutant.name, async () => {
      for (let seed = 1; seed <= WITHIN; seed += 1) {
        const { violations } = await runSeed(seed, { mutant });
        if (violations.some((violation) => mutant.shows.test(violation))) return;
      }
      assert.fail(`nothing like ${mutant.shows} in ${WITHIN} seeds`);
    });
});
