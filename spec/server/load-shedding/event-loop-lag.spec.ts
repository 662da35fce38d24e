import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LEAST_MS, TURN_MS, Turns } from '../../../src/server/load-shedding/event-loop-lag.ts';

/** A thread that works when it is told to; `endTurn` runs what was put off to that end. */
class Thread {
  #now = 100;
  #worked = 7;
  #atEnd: (() => void)[] = [];
  readonly turns = new Turns({
    now: () => this.#now,
    worked: () => this.#worked,
    atEnd: (callback) => this.#atEnd.push(callback),
  });

  work(ms: number): void {
    this.#now += ms;
    this.#worked += ms;
  }

  /** Its core is taken away, or it waits for a disk. */
  standStill(ms: number): void {
    this.#now += ms;
  }

  endTurn(): void {
    const due = this.#atEnd;
    this.#atEnd = [];
    for (const callback of due) callback();
  }
}

describe('the turns of the event loop', () => {
  it('are measured from the first call after a pause to the end of the turn', () => {
    const thread = new Thread();
    thread.turns.came();
    thread.work(7);
    thread.turns.came();
    thread.work(3);
    thread.endTurn();
    assert.equal(thread.turns.take(), 10);
  });

  it('follow each other without a gap while calls come; their mean is taken', () => {
    const thread = new Thread();
    thread.turns.came();
    thread.work(10);
    thread.turns.came();
    thread.endTurn();
    thread.work(3);
    thread.turns.came();
    thread.work(17);
    thread.endTurn();
    assert.equal(thread.turns.take(), 15);
  });

  it('count once', () => {
    const thread = new Thread();
    thread.turns.came();
    thread.work(10);
    thread.endTurn();
    thread.turns.take();
    assert.equal(thread.turns.take(), 0);
  });

  it('do not count without calls', () => {
    const thread = new Thread();
    thread.turns.came();
    thread.work(2);
    thread.endTurn();
    thread.endTurn();
    thread.turns.take();
    thread.work(500);
    thread.endTurn();
    thread.turns.came();
    thread.work(4);
    thread.endTurn();
    assert.equal(thread.turns.take(), 4);
  });

  it('count work alone: neither refusals nor a time in which the thread did not run', () => {
    const thread = new Thread();
    thread.turns.came();
    thread.work(3);
    thread.turns.refusing(() => thread.work(50));
    thread.standStill(80);
    thread.endTurn();
    assert.equal(thread.turns.take(), 3);
  });
});

describe('the room of a turn for calls that come in', () => {
  it('ends with TURN_MS of work', () => {
    const thread = new Thread();
    thread.turns.came();
    thread.work(TURN_MS - 0.1);
    assert.equal(thread.turns.hasRoom(), true);
    thread.work(0.1);
    assert.equal(thread.turns.hasRoom(), false);
  });

  it('is not more because calls were refused in a turn before, in which none came', () => {
    const thread = new Thread();
    thread.turns.refusing(() => thread.work(50));
    thread.endTurn();
    thread.turns.came();
    thread.work(TURN_MS);
    assert.equal(thread.turns.hasRoom(), false);
    thread.endTurn();
    assert.equal(thread.turns.take(), TURN_MS);
  });

  it('is not used up by refusals, nor by a time in which the thread did not run', () => {
    const thread = new Thread();
    thread.turns.came();
    thread.turns.refusing(() => thread.work(TURN_MS));
    thread.standStill(TURN_MS);
    assert.equal(thread.turns.hasRoom(), true);
  });
});

describe('the room at the end of a turn for calls that wait', () => {
  /** A turn of so much work; the room of its end begins. */
  function afterTurnOf(ms: number, refusalsMs = 0): Thread {
    const thread = new Thread();
    thread.turns.came();
    thread.work(ms);
    thread.turns.refusing(() => thread.work(refusalsMs));
    thread.endTurn();
    thread.turns.came();
    return thread;
  }
  const roomOf = (thread: Thread): number => {
    let ms = 0;
    for (; thread.turns.hasRoomForWaiting(); ms += 0.125) thread.work(0.125);
    return ms;
  };

  it('is what other work left', () => assert.equal(roomOf(afterTurnOf(0.25)), TURN_MS - 0.25));
  it('is never nothing', () => assert.equal(roomOf(afterTurnOf(3 * TURN_MS)), LEAST_MS));
  it('is as much as refusals took', () => assert.equal(roomOf(afterTurnOf(TURN_MS, 8)), 8));

  it('is not less because calls that waited began in the turn before', () => {
    const thread = afterTurnOf(0);
    assert.equal(roomOf(thread), TURN_MS);
    thread.endTurn();
    assert.equal(roomOf(thread), TURN_MS);
  });
});
