import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import {
  type BreakerState,
  CircuitBreaker,
  FIRST_PERIOD_MS,
  LONGEST_PERIOD_MS,
  SILENCES_TO_OPEN,
  type Trial,
  Unanswered,
} from '../../src/backend/circuit-breaker.ts';
import { ConnectLate } from '../../src/backend/connection-pool.ts';

const REFUSED = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
const LATE = new ConnectLate();
/** With the longest jitter. */
const LONGEST_PART = 0.95;

describe('the breaker', () => {
  let trial: () => ReturnType<Trial>;
  let trials: number;
  let changes: string[];
  let breaker: CircuitBreaker;
  afterEach(() => mock.timers.reset());
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    trial = async () => 'connected';
    trials = 0;
    changes = [];
    breaker = new CircuitBreaker(
      () => {
        trials += 1;
        return trial();
      },
      (reach) => changes.push(reach.reachable ? 'reachable' : reach.trouble),
      () => 0.999_999,
    );
  });
  /** Lets running trials end. */
  const settled = async (): Promise<void> => {
    for (let turns = 0; turns < 5; turns += 1) await Promise.resolve();
  };
  const wait = async (ms: number): Promise<void> => {
    mock.timers.tick(ms);
    await settled();
  };
  const fails = (cause: Error) => async (): Promise<never> => {
    throw cause;
  };
  const silence = (): void => breaker.silent(new Unanswered('nothing'));
  const silences = (): void => {
    for (let count = 0; count < SILENCES_TO_OPEN; count += 1) silence();
  };
  const refusal = (): void => breaker.unreachable(REFUSED);
  const late = (): void => breaker.unreachable(LATE);
  const answer = (): void => breaker.answered();
  const period = (): Promise<void> => wait(FIRST_PERIOD_MS);
  const longest = (): Promise<void> => wait(LONGEST_PERIOD_MS);
  const trialsBring = (brings: () => ReturnType<Trial>) => (): void => {
    trial = brings;
  };
  const connect = trialsBring(async () => 'connected');
  const answered = trialsBring(async () => 'answered');
  const refuse = trialsBring(fails(REFUSED));
  const mute = trialsBring(fails(new Unanswered('no answer to the probe')));
  const tryNow = (): Promise<void> => breaker.tryNow();

  /** What happens in turn, the state behind it, and the changes that were reported. */
  const ROWS: readonly (readonly [string, readonly (() => void | Promise<void>)[], BreakerState, string])[] = [
    ['opens with one refusal, and reports it once', [refusal, refusal], 'open', 'refused'],
    ['opens with the third silence in a row', [silence, silence, silence], 'open', 'silent'],
    ['counts silences anew behind an answer', [silence, silence, answer, silence, silence], 'closed', ''],
    ['counts a connection that is not accepted in time as a silence', [late, late, late], 'open', 'silent'],
    ['is closed before the third of them', [late, late], 'closed', ''],
    ['is closed at once by any answer', [refusal, answer], 'closed', 'refused reachable'],
    ['after a refusal, is closed by a trial that connects', [refusal, period], 'closed', 'refused reachable'],
    ['after silences, is on probation by one', [silences, period], 'probation', 'silent reachable'],
    ['on probation, opens with one silence', [silences, period, silence], 'open', 'silent reachable silent'],
    ['on probation, is closed by an answer', [silences, period, answer], 'closed', 'silent reachable'],
    [
      'after silences, is closed by a trial that is answered',
      [silences, answered, period],
      'closed',
      'silent reachable',
    ],
    [
      'after silences and a refusal, is closed by a connection: the silent process is gone',
      [silences, refuse, period, connect, longest],
      'closed',
      'silent reachable',
    ],
    [
      'waits a short period again behind an answer',
      [refusal, refuse, longest, longest, longest, longest, answer, refusal, connect, period],
      'closed',
      'refused reachable refused reachable',
    ],
    ['opens with a probe that is not answered', [mute, tryNow], 'open', 'silent'],
  ];
  for (const [rule, steps, state, reported] of ROWS)
    it(rule, async () => {
      for (const step of steps) await step();
      assert.equal(breaker.state, state);
      assert.equal(changes.join(' '), reported);
      for (const trouble of ['refused', 'silent'] as const)
        assert.equal(breaker.opened[trouble], changes.filter((change) => change === trouble).length);
      assert.equal(breaker.unresponsive, state === 'open' && changes.at(-1) === 'silent');
    });

  it('tries again after periods that double up to the longest, and is never slower than that', async () => {
    refuse();
    refusal();
    for (const period of [250, 500, 1_000, 2_000, 2_000, 2_000]) {
      const before = trials;
      await wait(Math.floor(period * LONGEST_PART) - 1);
      assert.equal(trials, before, `before ${period} ms`);
      await wait(2);
      assert.equal(trials, before + 1, `after ${period} ms`);
    }
    connect();
    await longest();
    assert.equal(breaker.state, 'closed');
  });

  it('shares one trial between those who start it at the same time', async () => {
    await Promise.all([breaker.tryNow(), breaker.tryNow(), breaker.tryNow()]);
    assert.equal(trials, 1);
  });

  it('tries no more once it is stopped', async () => {
    refusal();
    breaker.stop();
    await longest();
    assert.equal(trials, 0);
  });
});
