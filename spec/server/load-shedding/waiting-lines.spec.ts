import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Standing, WaitingLines } from '../../../src/server/load-shedding/waiting-lines.ts';

interface Call {
  readonly name: string;
  readonly client: string;
  readonly standing: Standing;
  readonly large: boolean;
}

const lines = (calls = 100, large = 4): WaitingLines<Call> => new WaitingLines({ calls, large });
const call = (name: string, client: string, standing: Standing = 'usual', large = false): Call => ({
  ...{ name, client, standing, large },
});

function order(waiting: WaitingLines<Call>): string {
  const names: string[] = [];
  for (let next = waiting.takeNext(); next !== undefined; next = waiting.takeNext()) names.push(next.name);
  return names.join(' ');
}

describe('calls of one kind that wait', () => {
  it('are served client by client: a flood of one network holds up no other', () => {
    const waiting = lines();
    for (const name of ['a1', 'a2', 'a3', 'a4']) waiting.enter(call(name, 'a'), 0);
    for (const name of ['b1', 'b2']) waiting.enter(call(name, 'b'), 1);
    waiting.enter(call('c1', 'c'), 2);
    assert.equal(order(waiting), 'a1 b1 c1 a2 b2 a3 a4');
  });

  it('of connections that bought something go first, of failed proofs last, within one network too', () => {
    const waiting = lines();
    for (const name of ['f1', 'f2', 'f3']) waiting.enter(call(name, 'a', 'failed'), 0);
    waiting.enter(call('u1', 'a'), 1);
    for (const name of ['p1', 'p2']) waiting.enter(call(name, 'a', 'paid'), 2);
    assert.equal(order(waiting), 'p1 p2 u1 f1 f2 f3');
  });

  it('of others begin at every fourth time: buyers who come again do not shut out new ones', () => {
    const waiting = lines();
    for (let at = 1; at <= 7; at += 1) waiting.enter(call(`p${at}`, 'a', 'paid'), 0);
    waiting.enter(call('u1', 'b'), 1);
    waiting.enter(call('f1', 'b', 'failed'), 1);
    assert.equal(order(waiting), 'p1 p2 p3 u1 p4 p5 p6 f1 p7');
  });

  it('are taken out by age over all lines', () => {
    const waiting = lines();
    waiting.enter(call('a1', 'a', 'failed'), 0);
    waiting.enter(call('b1', 'b', 'paid'), 1);
    waiting.enter(call('a2', 'a'), 2);
    assert.deepEqual(
      [waiting.takeOldest(1)?.name, waiting.takeOldest(1)?.name, waiting.takeOldest(1)],
      ['a1', 'b1', undefined],
    );
    assert.deepEqual([order(waiting), waiting.size], ['a2', 0]);
  });

  it('are bounded, and one client gets half of the places for large ones', () => {
    const waiting = lines(4, 4);
    const enter = (client: string): boolean => waiting.enter(call('x', client, 'usual', true), 0);
    assert.deepEqual([enter('a'), enter('a'), enter('a'), enter('b')], [true, true, false, true]);
    assert.deepEqual([waiting.enter(call('s', 'a'), 0), waiting.enter(call('s', 'c'), 0)], [true, false]);
    order(waiting);
    assert.equal(enter('a'), true, 'a place is given back');
  });
});
