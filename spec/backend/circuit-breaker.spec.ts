import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import {
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
  const silences = (count: number): void => {
    for (let i = 0; i < count; i += 1) breaker.silent(new Unanswered('nothing'));
  };
  /** Lets running trials end. */
  const settled = async (): Promise<void> => {
    for (let turns = 0; turns < 5; turns += 1) await Promise.resolve();
  };

  it('opens with one refusal, and reports it once', () => {
    breaker.unreachable(REFUSED);
    breaker.unreachable(REFUSED);
    assert.equal(breaker.state, 'open');
    assert.deepEqual(changes, ['refused']);
    assert.deepEqual(breaker.opened, { refused: 1, silent: 0 });
    assert.equal(breaker.unresponsive, false);
  });

  it('opens with the third silence in a row; an answer in between begins the count anew', () => {
    silences(SILENCES_TO_OPEN - 1);
    breaker.answered();
    silences(SILENCES_TO_OPEN - 1);
    assert.equal(breaker.state, 'closed');
    silences(1);
    assert.equal(breaker.state, 'open');
    assert.equal(breaker.unresponsive, true);
    assert.deepEqual(changes, ['silent']);
  });

  it('counts a connection that is not accepted in time as a silence', () => {
    for (let i = 1; i < SILENCES_TO_OPEN; i += 1) breaker.unreachable(LATE);
    assert.equal(breaker.state, 'closed');
    breaker.unreachable(LATE);
    assert.equal(breaker.state, 'open');
  });

  it('is closed at once by any answer', () => {
    breaker.unreachable(REFUSED);
    breaker.answered();
    assert.equal(breaker.state, 'closed');
    assert.deepEqual(changes, ['refused', 'reachable']);
  });

  it('after a refusal, is closed by a trial that connects', async () => {
    breaker.unreachable(REFUSED);
    mock.timers.tick(FIRST_PERIOD_MS);
    await settled();
    assert.deepEqual([trials, breaker.state], [1, 'closed']);
  });

  it('after silences, a connection alone brings probation: one more silence opens it, an answer closes it', async () => {
    silences(SILENCES_TO_OPEN);
    mock.timers.tick(FIRST_PERIOD_MS);
    await settled();
    assert.equal(breaker.state, 'probation');
    silences(1);
    assert.equal(breaker.state, 'open');
    mock.timers.tick(2 * FIRST_PERIOD_MS);
    await settled();
    assert.equal(breaker.state, 'probation');
    breaker.answered();
    assert.equal(breaker.state, 'closed');
    assert.deepEqual(changes, ['silent', 'reachable', 'silent', 'reachable']);
  });

  it('after silences, is closed by a trial that is answered', async () => {
    silences(SILENCES_TO_OPEN);
    trial = async () => 'answered';
    mock.timers.tick(FIRST_PERIOD_MS);
    await settled();
    assert.equal(breaker.state, 'closed');
  });

  it('tries again after periods that double up to the longest, and is never slower than that', async () => {
    trial = async () => {
      throw REFUSED;
    };
    breaker.unreachable(REFUSED);
    for (const period of [250, 500, 1_000, 2_000, 2_000, 2_000]) {
      const before = trials;
      mock.timers.tick(Math.floor(period * LONGEST_PART) - 1);
      await settled();
      assert.equal(trials, before, `before ${period} ms`);
      mock.timers.tick(2);
      await settled();
      assert.equal(trials, before + 1, `after ${period} ms`);
    }
    trial = async () => 'connected';
    mock.timers.tick(LONGEST_PERIOD_MS);
    await settled();
    assert.equal(breaker.state, 'closed');
  });

  it('an answer makes the next period a short one again', async () => {
    trial = async () => {
      throw REFUSED;
    };
    breaker.unreachable(REFUSED);
    for (let i = 0; i < 4; i += 1) {
      mock.timers.tick(LONGEST_PERIOD_MS);
      await settled();
    }
    breaker.answered();
    trials = 0;
    breaker.unreachable(REFUSED);
    mock.timers.tick(FIRST_PERIOD_MS);
    await settled();
    assert.equal(trials, 1);
  });

  it('after silences and a refusal, a connection is enough: the silent process is gone', async () => {
    silences(SILENCES_TO_OPEN);
    trial = async () => {
      throw REFUSED;
    };
    mock.timers.tick(FIRST_PERIOD_MS);
    await settled();
    trial = async () => 'connected';
    mock.timers.tick(LONGEST_PERIOD_MS);
    await settled();
    assert.equal(breaker.state, 'closed');
  });

  it('opens with a probe that is not answered', async () => {
    trial = async () => {
      throw new Unanswered('no answer to the probe');
    };
    await breaker.tryNow();
    assert.deepEqual(changes, ['silent']);
    assert.equal(breaker.unresponsive, true);
  });

  it('shares one trial between those who start it at the same time', async () => {
    await Promise.all([breaker.tryNow(), breaker.tryNow(), breaker.tryNow()]);
    assert.equal(trials, 1);
  });

  it('tries no more once it is stopped', async () => {
    breaker.unreachable(REFUSED);
    breaker.stop();
    mock.timers.tick(LONGEST_PERIOD_MS);
    await settled();
    assert.equal(trials, 0);
  });
});
