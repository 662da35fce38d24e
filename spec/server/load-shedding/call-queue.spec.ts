import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type CallKind, CallQueue, MAX_WAIT_MS, MOST_WAITING } from '../../../src/server/load-shedding/call-queue.ts';
import type { Standing } from '../../../src/server/load-shedding/waiting-lines.ts';

/** A queue whose process has room in flight and in its turns as it is told. */
class Stage {
  now = 0;
  allowed = true;
  room = true;
  working = 0;
  workingAtBegin = 0;
  readonly log: string[] = [];
  #atEnd: (() => void)[] = [];
  readonly queue = new CallQueue({
    turns: { came: () => undefined, hasRoom: () => this.room, hasRoomForWaiting: () => this.room },
    allowed: () => this.allowed,
    work: () => {
      this.working += 1;
      return () => {
        this.working -= 1;
      };
    },
    now: () => this.now,
    atEnd: (callback) => this.#atEnd.push(callback),
  });

  enter(
    name: string,
    kind: CallKind = 'plain',
    { large = false, gone = false, client = name, standing = 'usual' as Standing } = {},
  ): boolean {
    const note = (what: string) => () => {
      this.workingAtBegin = this.working;
      this.log.push(`${name} ${what}`);
    };
    const ends = { begin: note('began'), refuse: note('refused') };
    return this.queue.enter({ kind, client, standing, large, gone: () => gone, ...ends });
  }

  endTurn(): void {
    const due = this.#atEnd;
    this.#atEnd = [];
    for (const callback of due) callback();
  }

  endTurns(count: number): void {
    for (let turn = 0; turn < count; turn += 1) this.endTurn();
  }

  /** What happened since the last time. */
  happened(): readonly string[] {
    return this.log.splice(0);
  }
}

describe('a call', () => {
  it('begins at once while there is room', () => assert.equal(new Stage().queue.admits('plain'), true));

  for (const [title, without] of [
    ['in flight', { allowed: false }],
    ['in the turn', { room: false }],
  ] as const)
    it(`waits while there is no room ${title}`, () => {
      const stage = new Stage();
      Object.assign(stage, without);
      assert.equal(stage.queue.admits('plain'), false);
      assert.equal(stage.enter('a'), true);
      stage.endTurn();
      assert.deepEqual(stage.happened(), []);
    });

  it('does not pass those that wait', () => {
    const stage = new Stage();
    stage.enter('a');
    assert.equal(stage.queue.admits('plain'), false);
    stage.endTurn();
    assert.equal(stage.queue.admits('plain'), true);
  });
});

describe('calls that wait', () => {
  it('begin in the order in which they came', () => {
    const stage = new Stage();
    for (const name of ['a', 'b', 'c']) stage.enter(name);
    stage.endTurns(2);
    assert.deepEqual(stage.happened(), ['a began', 'b began', 'c began']);
  });

  it('begin in numbers that double from turn to turn while there is room', () => {
    const stage = new Stage();
    for (let call = 0; call < 20; call += 1) stage.enter(`${call}`);
    const began = [1, 2, 3, 4].map(() => {
      stage.endTurn();
      return stage.happened().length;
    });
    assert.deepEqual(began, [1, 2, 4, 8]);
  });

  it('begin when the next turn has room', () => {
    const stage = new Stage();
    stage.room = false;
    stage.enter('a');
    stage.endTurn();
    stage.room = true;
    stage.endTurn();
    assert.deepEqual(stage.happened(), ['a began']);
  });

  it('begin one by one as calls end', () => {
    const stage = new Stage();
    stage.allowed = false;
    for (const name of ['a', 'b']) stage.enter(name);
    stage.endTurn();
    stage.allowed = true;
    stage.queue.freed();
    stage.endTurn();
    assert.deepEqual(stage.happened(), ['a began']);
  });

  it('begin when more may be in flight than before, though none has ended', () => {
    const stage = new Stage();
    stage.allowed = false;
    stage.enter('a');
    stage.endTurn();
    stage.allowed = true;
    stage.queue.tick();
    stage.endTurn();
    assert.deepEqual(stage.happened(), ['a began']);
  });

  it('take turns by kind: a flood of one does not hold up the others', () => {
    const stage = new Stage();
    for (const name of ['1', '2', '3', '4']) stage.enter(name, 'plain');
    stage.enter('a', 'message');
    stage.enter('x', 'proof');
    stage.enter('y', 'proof');
    stage.endTurns(3);
    const began = stage.happened().map((line) => line[0]);
    assert.deepEqual(began, ['a', '1', 'x', '2', 'y', '3', '4']);
  });

  it('begin without a slot where they are no calls, while all slots are taken', () => {
    const stage = new Stage();
    stage.allowed = false;
    stage.enter('a');
    stage.enter('d', 'other');
    stage.enter('h', 'probe');
    assert.equal(stage.queue.admits('other'), false, 'behind those that wait');
    stage.endTurns(3);
    assert.deepEqual(stage.happened().toSorted(), ['d began', 'h began']);
    assert.equal(stage.queue.admits('other'), true);
    assert.equal(stage.queue.admits('plain'), false);
  });

  it('begin one in ten milliseconds where their last proof bought nothing, and hold up no other', () => {
    const stage = new Stage();
    const failed = { client: 'f', standing: 'failed' } as const;
    for (const name of ['1', '2', '3']) stage.enter(name, 'proof', failed);
    stage.endTurns(3);
    stage.enter('a', 'proof');
    stage.endTurns(2);
    assert.deepEqual(stage.happened(), ['1 began', 'a began']);
    stage.now = 10;
    stage.endTurns(3);
    assert.deepEqual([stage.happened(), stage.queue.waiting()], [['2 began'], 1]);
  });

  it('are forgotten when their callers leave', () => {
    const stage = new Stage();
    stage.enter('a', 'plain', { gone: true });
    stage.enter('b');
    stage.endTurn();
    stage.endTurn();
    assert.deepEqual([stage.happened(), stage.queue.waiting()], [['b began'], 0]);
  });

  it('are refused when they have waited too long, and no others', () => {
    const stage = new Stage();
    stage.allowed = false;
    stage.enter('a');
    stage.enter('p', 'proof');
    stage.now = 1;
    stage.enter('b');
    stage.now = MAX_WAIT_MS;
    stage.queue.tick();
    assert.deepEqual(stage.happened().toSorted(), ['a refused', 'p refused']);
    assert.equal(stage.queue.waiting(), 1);
  });

  it('are refused a few at a time, all of them within some turns', () => {
    const stage = new Stage();
    stage.allowed = false;
    for (let call = 0; call < 1_000; call += 1) stage.enter(`${call}`);
    stage.now = MAX_WAIT_MS;
    const refused = Array.from({ length: 20 }, (_, turn) => {
      if (turn % 5 === 0) stage.queue.tick();
      stage.endTurn();
      return stage.happened().length;
    });
    assert.ok(Math.max(...refused) <= 128, `${refused}`);
    assert.deepEqual([stage.queue.waiting(), stage.working], [0, 0]);
  });

  it('are so many of one kind at most; another kind has its own room', () => {
    const stage = new Stage();
    stage.allowed = false;
    for (let call = 0; call < MOST_WAITING.calls; call += 1) assert.equal(stage.enter(`${call}`), true);
    assert.equal(stage.enter('one more'), false);
    assert.equal(stage.enter('p', 'proof'), true);
  });

  it('are few where they are large; another kind has its own room', () => {
    const stage = new Stage();
    stage.allowed = false;
    const large = { large: true };
    for (let call = 0; call < MOST_WAITING.large; call += 1) assert.equal(stage.enter(`${call}`, 'plain', large), true);
    assert.equal(stage.enter('one more', 'plain', large), false);
    assert.equal(stage.enter('p', 'proof', large), true);
    assert.equal(stage.enter('small'), true);
    stage.now = MAX_WAIT_MS;
    stage.queue.tick();
    assert.equal(stage.enter('later', 'plain', large), true);
  });

  it('count as one piece of work until none waits', () => {
    const stage = new Stage();
    stage.allowed = false;
    for (const name of ['a', 'b']) stage.enter(name);
    assert.equal(stage.working, 1);
    stage.allowed = true;
    stage.queue.freed();
    stage.endTurn();
    stage.endTurn();
    stage.queue.freed();
    stage.endTurn();
    assert.deepEqual([stage.queue.waiting(), stage.working], [0, 0]);
    assert.equal(stage.workingAtBegin, 1, 'a process that drains does not end before the last one has begun');
  });

  it('are all refused at the end of the process', () => {
    const stage = new Stage();
    stage.enter('a');
    stage.enter('p', 'proof');
    stage.queue.close();
    assert.deepEqual([stage.happened().length, stage.queue.waiting(), stage.working], [2, 0, 0]);
  });
});
