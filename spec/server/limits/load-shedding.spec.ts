import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { Admitted } from '../../../src/limiter.ts';
import {
  type AnswerBudget,
  BUSY,
  type CallKind,
  CallLimit,
  createAnswerBudget,
  FAILED_EVERY_MS,
  FREE_WAIT_MS,
  LEAST_IN_FLIGHT,
  LEAST_MS,
  LONG_TURN_MS,
  MAX_WAIT_MS,
  MOST_LARGE,
  MOST_WAITING,
  PAID_WAIT_MS,
  Slots,
  type Standing,
  TURN_MS,
} from '../../../src/server/limits/load-shedding.ts';
import { type VirtualTime, virtualTime } from '../../payments/settlement/virtual-time.ts';

/** A thread that works when it is told to; `endTurn` runs what was put off to that end. */
class Stage {
  working = 0;
  workingAtBegin = 0;
  /** The work of a call that waited and begins, milliseconds. */
  beginMs = 0;
  readonly log: string[] = [];
  readonly #held: (() => void)[] = [];
  #now = 100;
  #worked = 7;
  #atEnd: (() => void)[] = [];
  #sleepers: { readonly until: number; readonly wake: () => void }[] = [];
  readonly limit: CallLimit;

  constructor(maxInFlight = 1_000) {
    this.limit = new CallLimit({
      maxInFlight,
      work: () => {
        this.working += 1;
        return () => {
          this.working -= 1;
        };
      },
      runtime: {
        now: () => this.#now,
        worked: () => this.#worked,
        atEnd: (callback) => this.#atEnd.push(callback),
        sleep: (ms) => new Promise((wake) => this.#sleepers.push({ until: this.#now + ms, wake })),
      },
    });
  }

  work(ms: number): void {
    this.#now += ms;
    this.#worked += ms;
  }

  /** Its core is taken away, or it waits for a disk. */
  async standStill(ms: number): Promise<void> {
    this.#now += ms;
    const due = this.#sleepers.filter(({ until }) => until <= this.#now);
    this.#sleepers = this.#sleepers.filter(({ until }) => until > this.#now);
    for (const { wake } of due) wake();
    await undefined;
  }

  endTurn(): void {
    const due = this.#atEnd;
    this.#atEnd = [];
    for (const callback of due) callback();
  }

  /** Turns of so much work in which calls come, then a judgement; for so many times. */
  judged(times: number, turnMs: number, busy = 1): void {
    for (let time = 0; time < times; time += 1) {
      this.limit.came();
      this.work(turnMs);
      this.endTurn();
      this.limit.judge(busy);
    }
  }

  take(calls: number): void {
    for (let call = 0; call < calls; call += 1) this.#held.push(this.limit.slots.take()());
  }

  free(calls = this.#held.length): void {
    for (const leave of this.#held.splice(0, calls)) leave();
  }

  enter(
    name: string,
    kind: CallKind = 'plain',
    { large = false, gone = false, client = name, standing = 'usual' as Standing } = {},
  ): boolean {
    const begin = (): void => {
      this.workingAtBegin = this.working;
      this.work(this.beginMs);
      this.log.push(`${name} began`);
    };
    const refuse = (): void => void this.log.push(`${name} refused`);
    return this.limit.wait({ kind, client, standing, large, gone: () => gone, begin, refuse });
  }

  /** What happened since the last time. */
  happened(): readonly string[] {
    return this.log.splice(0);
  }
}

/** A stage whose slots are all taken. */
function full(): Stage {
  const stage = new Stage(1);
  stage.take(1);
  return stage;
}

describe('a call', () => {
  it('begins at once while a slot is free and its turn has time', () => {
    const stage = new Stage(1);
    assert.equal(stage.limit.admits('plain'), true);
    stage.work(TURN_MS);
    assert.equal(stage.limit.admits('plain'), false);
    stage.endTurn();
    assert.equal(stage.limit.admits('plain'), true);
    stage.take(1);
    assert.equal(stage.limit.admits('plain'), false);
    assert.equal(stage.limit.admits('other'), true, 'what is no call needs no slot');
  });

  it('has the turn for its work alone: not for a time in which the thread did not run', async () => {
    const stage = new Stage();
    stage.limit.admits('plain');
    await stage.standStill(10 * TURN_MS);
    assert.equal(stage.limit.admits('plain'), true);
  });

  it('does not pass those that wait', () => {
    const stage = new Stage();
    stage.enter('a');
    assert.equal(stage.limit.admits('plain'), false);
    stage.endTurn();
    assert.equal(stage.limit.admits('plain'), true);
  });
});

describe('calls that wait', () => {
  it('begin in the order in which they came', () => {
    const stage = new Stage();
    for (const name of ['a', 'b', 'c']) stage.enter(name);
    stage.endTurn();
    stage.endTurn();
    assert.deepEqual(stage.happened(), ['a began', 'b began', 'c began']);
  });

  it('begin as far as other work left time in the turn, and for a least time beside any', () => {
    for (const [otherMs, roomMs] of [
      [0, TURN_MS],
      [0.125, TURN_MS - 0.125],
      [3 * TURN_MS, LEAST_MS],
    ] as const) {
      const stage = new Stage();
      stage.beginMs = 0.0625;
      stage.limit.came();
      stage.work(otherMs);
      for (let call = 0; call < 40; call += 1) stage.enter(`${call}`);
      stage.endTurn();
      stage.endTurn();
      stage.happened();
      stage.work(otherMs);
      stage.endTurn();
      assert.equal(stage.happened().length, roomMs / stage.beginMs, `${otherMs}`);
    }
  });

  it('begin one by one as calls end', () => {
    const stage = full();
    for (const name of ['a', 'b']) stage.enter(name);
    stage.endTurn();
    assert.deepEqual(stage.happened(), []);
    stage.free();
    stage.endTurn();
    assert.deepEqual(stage.happened()[0], 'a began');
  });

  it('begin kind by kind: a flood of one does not hold up the others', () => {
    const stage = new Stage();
    for (const name of ['1', '2', '3', '4']) stage.enter(name, 'plain');
    stage.enter('a', 'message');
    stage.enter('x', 'proof');
    stage.enter('y', 'proof');
    stage.endTurn();
    stage.endTurn();
    const began = stage.happened().map((line) => line[0]);
    assert.deepEqual(began, ['a', '1', 'x', '2', 'y', '3', '4']);
  });

  it('begin without a slot where they are no calls, while all slots are taken', () => {
    const stage = full();
    stage.enter('a');
    stage.enter('d', 'other');
    stage.enter('h', 'probe');
    assert.equal(stage.limit.admits('other'), false, 'behind those that wait');
    stage.endTurn();
    stage.endTurn();
    assert.deepEqual(stage.happened().toSorted(), ['d began', 'h began']);
    assert.equal(stage.limit.admits('other'), true);
    assert.equal(stage.limit.admits('plain'), false);
  });

  it('begin one in ten milliseconds where their last proof bought nothing, and hold up no other', async () => {
    const stage = new Stage();
    const failed = { client: 'f', standing: 'failed' } as const;
    for (const name of ['1', '2', '3']) stage.enter(name, 'proof', failed);
    for (let turn = 0; turn < 3; turn += 1) stage.endTurn();
    stage.enter('a', 'proof');
    for (let turn = 0; turn < 3; turn += 1) stage.endTurn();
    assert.deepEqual(stage.happened(), ['1 began', 'a began']);
    await stage.standStill(FAILED_EVERY_MS);
    for (let turn = 0; turn < 3; turn += 1) stage.endTurn();
    assert.deepEqual([stage.happened(), stage.limit.waiting], [['2 began'], 1]);
  });

  it('are forgotten when their callers leave', () => {
    const stage = new Stage();
    stage.enter('a', 'plain', { gone: true });
    stage.enter('b');
    stage.endTurn();
    assert.deepEqual([stage.happened(), stage.limit.waiting], [['b began'], 0]);
  });

  it('are refused after their wait, whatever their kind', async () => {
    const stage = full();
    stage.enter('a');
    stage.enter('p', 'proof');
    await stage.standStill(1);
    stage.enter('b');
    await stage.standStill(MAX_WAIT_MS - 1);
    assert.deepEqual(stage.happened().toSorted(), ['a refused', 'p refused']);
    assert.equal(stage.limit.waiting, 1);
  });

  it('are so many of one kind at most; another kind has its own room', () => {
    const stage = full();
    for (let call = 0; call < MOST_WAITING; call += 1) assert.equal(stage.enter(`${call}`), true);
    assert.equal(stage.enter('one more'), false);
    assert.equal(stage.enter('p', 'proof'), true);
  });

  it('are few where they are large, half of them of one client; another kind has its own room', async () => {
    const stage = full();
    const large = (client: string) => stage.enter(client, 'plain', { large: true, client });
    for (let call = 0; call < MOST_LARGE / 2; call += 1) assert.equal(large('a'), true);
    assert.deepEqual([large('a'), large('b'), stage.enter('small')], [false, true, true]);
    assert.equal(stage.enter('p', 'proof', { large: true, client: 'a' }), true);
    await stage.standStill(MAX_WAIT_MS);
    assert.equal(large('a'), true, 'their places are given back');
  });

  it('count as one piece of work until none waits', () => {
    const stage = full();
    for (const name of ['a', 'b']) stage.enter(name);
    assert.equal(stage.working, 1);
    stage.free();
    stage.endTurn();
    stage.endTurn();
    assert.deepEqual([stage.limit.waiting, stage.working], [0, 0]);
    assert.equal(stage.workingAtBegin, 1, 'a process that drains does not end before the last one has begun');
  });

  it('are all refused at the end of the process', () => {
    const stage = full();
    stage.enter('a');
    stage.enter('p', 'proof');
    stage.limit.close();
    assert.deepEqual([stage.happened().length, stage.limit.waiting, stage.working], [2, 0, 0]);
  });
});

describe('the limit on calls in flight', () => {
  const LONG = 2 * LONG_TURN_MS;
  const IN_FLIGHT = 400;

  /** A limit that long turns have lowered, of a loop that works all the time. */
  function lowered(): Stage {
    const stage = new Stage();
    stage.judged(100, 1);
    stage.take(IN_FLIGHT);
    stage.judged(1, LONG);
    return stage;
  }

  it('is none while turns are short, or while the loop has time left: its long turns are bursts', () => {
    for (const [turnMs, busy] of [
      [LONG_TURN_MS, 1],
      [LONG, BUSY],
    ] as const) {
      const stage = new Stage();
      stage.take(IN_FLIGHT);
      stage.judged(200, turnMs, busy);
      assert.equal(stage.limit.calls, Number.POSITIVE_INFINITY);
    }
  });

  it('is a part of what is in flight, and no less until some of it has ended', () => {
    const stage = lowered();
    assert.equal(stage.limit.calls, 0.75 * IN_FLIGHT);
    assert.equal(stage.limit.admits('plain'), false);
    stage.judged(5, LONG);
    assert.equal(stage.limit.calls, 0.75 * IN_FLIGHT);
    stage.free(IN_FLIGHT / 2);
    assert.equal(stage.limit.admits('plain'), true);
    stage.judged(2, LONG);
    assert.equal(stage.limit.calls, (0.75 * IN_FLIGHT) / 2);
  });

  it('never falls below what keeps a core busy', () => {
    const stage = lowered();
    stage.free(IN_FLIGHT - 1);
    stage.judged(2, LONG);
    assert.equal(stage.limit.calls, LEAST_IN_FLIGHT);
  });

  it('does not rise while no call waits for it', () => {
    const stage = lowered();
    stage.free();
    stage.judged(50, 1);
    assert.equal(stage.limit.calls, 0.75 * IN_FLIGHT);
  });

  /** The limit a second later, while calls wait for it and so many end in each judgement. */
  function afterSecond(busy: number, ended: number): number {
    const stage = lowered();
    if (busy < BUSY) stage.judged(100, 1, busy);
    stage.take(10 * IN_FLIGHT);
    for (let judgement = 0; judgement < 40; judgement += 1) {
      stage.limit.admits('plain');
      stage.free(ended);
      stage.take(ended);
      stage.judged(1, 1, busy);
    }
    return stage.limit.calls / (0.75 * IN_FLIGHT);
  }

  it('rises while calls wait for it: slowly without calls that end, with them as they end, fast for an idle loop', () => {
    const slow = afterSecond(1, 0);
    const earned = afterSecond(1, IN_FLIGHT / 2);
    const idle = afterSecond(0.1, 0);
    assert.ok(slow > 1.2 && slow < 2 && earned > slow && idle > 3, `${slow} ${earned} ${idle}`);
  });
});

describe('slots', () => {
  it('are free up to the last one', () => {
    const slots = new Slots(2);
    slots.take()();
    assert.equal(slots.free(), true);
    slots.take()();
    assert.deepEqual([slots.free(), slots.inFlight()], [false, 2]);
  });

  it('are given back once all holds on them have ended, and tell it', () => {
    let freed = 0;
    const slots = new Slots(1, () => {
      freed += 1;
    });
    const hold = slots.take();
    const [connection, work] = [hold(), hold()];
    connection();
    assert.deepEqual([slots.free(), freed], [false, 0]);
    work();
    assert.deepEqual([slots.free(), slots.inFlight(), freed], [true, 0, 1]);
  });

  it('of calls that began long ago come back, but for those whose answers go out', () => {
    let freed = 0;
    const slots = new Slots(3, () => {
      freed += 1;
    });
    let answering = true;
    const lost = slots.take()();
    slots.take(() => answering)();
    assert.equal(slots.freeLost(0), 0, 'they began later');
    const now = performance.now() + 1;
    assert.deepEqual([slots.freeLost(now), slots.inFlight(), freed], [1, 1, 1]);
    lost();
    assert.deepEqual([slots.inFlight(), freed], [1, 1], 'a slot comes back once');
    answering = false;
    assert.deepEqual([slots.freeLost(now), slots.inFlight()], [1, 0]);
  });
});

const BYTES = 100;
const free = (size: number) => ({ size, rank: 'free' });
const paid = (size: number) => ({ size, rank: 'paid' });

/** The state of a reservation: `granted`, `refused` after its wait, or `waiting`. */
async function stateOf(reservation: Promise<Admitted | undefined>): Promise<'granted' | 'refused' | 'waiting'> {
  const waiting = Symbol('waiting');
  const state = await Promise.race([reservation, new Promise((resolve) => setImmediate(resolve, waiting))]);
  if (state === waiting) return 'waiting';
  return state === undefined ? 'refused' : 'granted';
}

describe('the memory for answers', () => {
  let budget: AnswerBudget;
  let time: VirtualTime;
  beforeEach(() => {
    time = virtualTime();
    budget = createAnswerBudget(BYTES, time);
  });

  it('goes to paid answers first', async () => {
    const held = await budget.wait(free(BYTES));
    const first = budget.wait(free(80));
    const bought = budget.wait(paid(80));
    held?.leave();
    assert.deepEqual([await stateOf(bought), await stateOf(first)], ['granted', 'waiting']);
  });

  it('is refused to a free answer after its wait, and to a paid one after a longer', async () => {
    await budget.wait(free(BYTES));
    const asked = [budget.wait(free(1)), budget.wait(paid(1))];
    const states = (): Promise<string[]> => Promise.all(asked.map(stateOf));
    await time.pass(FREE_WAIT_MS - 1);
    assert.deepEqual(await states(), ['waiting', 'waiting']);
    await time.pass(1);
    assert.deepEqual(await states(), ['refused', 'waiting']);
    await time.pass(PAID_WAIT_MS - FREE_WAIT_MS);
    assert.deepEqual(await states(), ['refused', 'refused']);
    assert.deepEqual([budget.taken, budget.waiting], [BYTES, 0]);
  });

  it('goes to the next answer when one stops waiting', async () => {
    await budget.wait(free(60));
    const tooLarge = budget.wait(free(80));
    await time.pass(FREE_WAIT_MS - 1);
    const fits = budget.wait(free(40));
    assert.equal(await stateOf(fits), 'waiting');
    await time.pass(1);
    assert.deepEqual([await stateOf(tooLarge), await stateOf(fits)], ['refused', 'granted']);
  });
});
