import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { unwatched } from '../../../spec/support/unwatched.ts';
import { report, runSeed, shrink } from './seeds.ts';

const elsewhere = unwatched<typeof import('./seeds.ts')>(new URL('./seeds.ts', import.meta.url));
const RUNS = 500;

describe('copies of a paid call, with faults by seed', () => {
  it(`${RUNS} seeds: no buyer pays twice, no payment is lost, every law holds at every step`, async () => {
    const began = performance.now();
    let steps = 0;
    let faults = 0;
    const endings: Record<string, number> = {};
    for (let seed = 1; seed <= RUNS; seed += 1) {
      const run = await elsewhere('runSeed', seed);
      if (run.violations.length > 0) assert.fail(report(await shrink(run)));
      steps += run.steps;
      faults += run.faults;
      for (const ending of run.endings) endings[ending] = (endings[ending] ?? 0) + 1;
    }
    const seconds = Math.round((performance.now() - began) / 100) / 10;
    process.stdout.write(`${JSON.stringify({ sim: 'seeds', runs: RUNS, steps, faults, endings, seconds })}\n`);
    // Runs without faults, or without answers, would prove nothing.
    assert.ok(faults > 5 * RUNS, `${faults} faults`);
    for (const ending of ['answered', 'delivered', 'undelivered', 'used', 'conflict', 'challenged'])
      assert.ok((endings[ending] ?? 0) > RUNS / 200, `${ending}: ${endings[ending] ?? 0}`);
  });

  it('runs the same steps for the same seed', async () => {
    for (const seed of [7, 77, 777]) {
      const [one, other] = [await runSeed(seed, undefined, [], true), await runSeed(seed, undefined, [], true)];
      assert.ok(one.trace.length > 20);
      assert.deepEqual(other.trace, one.trace);
    }
  });
});
