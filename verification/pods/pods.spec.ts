import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { injected } from './injections.ts';
import { faults, merchantAway, rollingRestart, SHORT, type Shown, type Tell, withoutRelease } from './scenarios.ts';
import { merchantPod } from './world.ts';

/** Enough that in each drain some call of the slowest is under way. */
const BUYERS = 24;

const pod = injected(merchantPod());
/** Runs, and shows with a broken promise what the pods wrote: they cannot be asked afterwards. */
async function kept(run: (tell: Tell) => Promise<Shown>): Promise<Shown> {
  let told = '';
  const shown = await run((text) => {
    told += text;
  });
  assert.deepEqual(faults(shown), [], `${JSON.stringify(shown)}\n${told}`);
  return shown;
}

// Each waits for seconds of drains; side by side they take as long as the longest.
describe('an injected pod under buyers that pay', { concurrency: true }, () => {
  const rolling = { lengths: SHORT, buyers: BUYERS, leastCalls: 0 };

  it('fails no call in a rolling restart, also none that outlives the window', async () => {
    await kept((tell) => rollingRestart({ ...rolling, kind: 'rolling', scenario: 'rolling restart', pod, tell }));
  });

  it('loses something paid where nothing holds the merchant back, so the run above can fail', async () => {
    const free = withoutRelease(pod);
    await kept((tell) => rollingRestart({ ...rolling, kind: 'control', scenario: 'control', pod: free, tell }));
  });

  it('delivers all that is paid while its merchant fails its liveness probe and is away for 1.5 s', async () => {
    const away = { kind: 'restart', scenario: 'restart', lengths: SHORT, pod, times: 1 } as const;
    const shown = await kept((tell) => merchantAway({ ...away, tell }));
    assert.equal(shown.starts, 2);
  });
});

describe('the goals of restarts', () => {
  it('notice each broken promise', () => {
    const well: Shown = {
      ...{
        kind: 'rolling',
        scenario: '',
        calls: 100,
        slow: 50,
        failed: 0,
        undelivered: 0,
        undeliveredPosts: 0,
        lost: 0,
      },
      ...{ failures: {}, seconds: 1, drainSeconds: 4, outlived: 1, starts: 2 },
    };
    assert.deepEqual(faults(well), []);
    assert.deepEqual(faults({ ...well, kind: 'kill', undelivered: 6, failed: 60 }), []);
    assert.deepEqual(faults({ ...well, kind: 'restart', failed: 6 }), []);
    assert.deepEqual(faults({ ...well, kind: 'control', failed: 2, undelivered: 1 }), []);
    const bad: readonly Partial<Shown>[] = [
      { failed: 1 },
      { outlived: 0 },
      { slow: 0 },
      { undelivered: 1 },
      { kind: 'restart', undelivered: 1 },
      { kind: 'control', failed: 3 },
      { kind: 'kill', undelivered: 7 },
    ];
    for (const change of bad) assert.equal(faults({ ...well, ...change }).length, 1, JSON.stringify(change));
  });
});
