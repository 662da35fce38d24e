import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { faults, SCENARIOS, type Shown } from './scenarios.ts';

/** Enough for every scenario to happen; `main.ts` takes the number as an option. */
const CALLS = 90;

describe('a backend that is away, hangs or breaks connections, with six buyers', () => {
  for (const { name, run } of SCENARIOS)
    it(name, async () => {
      const shown = await run(CALLS);
      assert.deepEqual(faults(shown), [], JSON.stringify(shown));
      assert.ok(shown.calls > 0);
    });

  it('notices each broken promise', () => {
    const well: Shown = {
      ...{ scenario: 'healthy', calls: 1_000, delivered: 1_000, refusedBeforeMoney: 0, settled: 1_000 },
      ...{ settledAndUndelivered: 0, inHand: 0, others: {}, collected: 0, due: 0, lost: 0, opened: 0 },
    };
    assert.deepEqual(faults(well), []);
    const bad: readonly Partial<Shown>[] = [
      { delivered: 998 },
      { lost: 1 },
      { recoveryMs: 4_001 },
      { scenario: 'down', settled: 1 },
      { scenario: 'away for 1.5 s, again and again', settledAndUndelivered: 1 },
      { scenario: 'restarts with its hook, again and again', settledAndUndelivered: 1, inHand: 1 },
      { scenario: 'restarts with its hook, again and again', calls: 1_001 },
      { scenario: 'hangs', settledAndUndelivered: 13, opened: 2 },
    ];
    for (const change of bad) assert.equal(faults({ ...well, ...change }).length, 1, JSON.stringify(change));
  });
});
