import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { report, runSeed } from './run.ts';

const RUNS = 300;

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
