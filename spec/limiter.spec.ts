import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { type Admitted, Limiter, Places, type Refusal } from '../src/limiter.ts';
import { type VirtualTime, virtualTime } from './payments/settlement/virtual-time.ts';

describe('places that clients share', () => {
  const fill = (places: Places, client: string): number => {
    let taken = 0;
    while (places.take([client])) taken += 1;
    return taken;
  };

  it('give one client half, the next one a third of all, and never the last to a few', () => {
    const places = new Places(() => 256, 'share');
    assert.deepEqual(
      ['one', 'two', 'three'].map((client) => fill(places, client)),
      [128, 64, 32],
    );
    assert.equal(places.taken, 224);
  });

  it('are free again when they are given back', () => {
    const places = new Places(4, 'share');
    assert.deepEqual([fill(places, 'one'), fill(places, 'two')], [2, 1]);
    places.giveBack(['one']);
    assert.equal(fill(places, 'two'), 1);
  });

  it('may have a bound for each client', () => {
    const places = new Places(10, 3);
    assert.deepEqual([fill(places, 'one'), fill(places, 'two')], [3, 3]);
  });

  it('all go to what is larger than they are, alone', () => {
    const places = new Places(10);
    assert.deepEqual([places.take(['one'], 11), places.take(['two'])], [true, false]);
    places.giveBack(['one'], 11);
    assert.deepEqual([places.take(['two']), places.take(['one'], 11)], [true, false]);
    assert.equal(new Places(0).take(), false);
  });
});

describe('what waits', () => {
  let time: VirtualTime;
  let limiter: Limiter;
  let started: string[];
  let refused: string[];
  let isOpen: (kind: string, rank: string) => boolean;
  beforeEach(() => {
    time = virtualTime();
    started = [];
    refused = [];
    isOpen = () => false;
    limiter = new Limiter({
      ...{ most: 1_000, isOpen: (kind, rank) => isOpen(kind, rank), waiting: 200, waitMs: 1_000, time },
      ...{ kinds: ['bought', 'free'], ranks: ['0', '1', '2'] },
    });
  });
  const enter = (names: string, { client = '', kind = 'free', rank = '1' } = {}): readonly Admitted[] =>
    names.split(' ').map((name) => {
      const start = (): void => void started.push(name);
      const refuse = (reason: Refusal): void => void refused.push(reason === 'full' ? 'full' : name);
      return limiter.enter({ client: client || name, kind, rank, start, refuse });
    });
  const order = (opened = (_kind: string, _rank: string) => true): string => {
    isOpen = opened;
    while (limiter.startNext());
    return started.join(' ');
  };

  it('starts client by client: many of one hold up no other', () => {
    enter('a1 a2 a3 a4', { client: 'a' });
    enter('b1 b2', { client: 'b' });
    enter('c1', { client: 'c' });
    assert.equal(order(), 'a1 b1 c1 a2 b2 a3 a4');
  });

  it('starts kind by kind', () => {
    enter('1 2 3');
    enter('x y', { kind: 'bought' });
    assert.equal(order(), '1 x 2 y 3');
  });

  it('starts lower ranks first, but for every fourth start', () => {
    enter('p1 p2 p3 p4 p5 p6 p7', { rank: '0' });
    enter('u1');
    enter('f1', { rank: '2' });
    assert.equal(order(), 'p1 p2 p3 u1 p4 p5 p6 f1 p7');
  });

  it('starts none of a kind and rank that is closed', () => {
    enter('1 2 3');
    enter('x', { kind: 'bought' });
    enter('f', { rank: '2' });
    assert.equal(
      order((kind, rank) => kind === 'free' && rank !== '2'),
      '1 2 3',
    );
    assert.equal(limiter.waiting, 2);
  });

  it('is bounded, each kind apart', () => {
    enter(Array(201).fill('a').join(' '), { client: 'a' });
    assert.deepEqual([limiter.waitingOf('free'), refused], [200, ['full']]);
    enter('x', { kind: 'bought' });
    assert.deepEqual([limiter.waiting, refused.length], [201, 1]);
  });

  it('is refused when it has waited too long, and nothing else is', async () => {
    const [left] = enter('left');
    enter('a b');
    await time.pass(1);
    enter('c');
    left?.leave();
    await time.pass(998);
    assert.deepEqual(refused, []);
    await time.pass(1);
    assert.deepEqual([refused, order()], [['a', 'b'], 'c']);
  });

  it('is refused a few at a time', async () => {
    enter(Array.from({ length: 150 }, (_, n) => `${n}`).join(' '));
    const counts: number[] = [];
    const sleep = time.sleep;
    time.sleep = (ms) => {
      counts.push(refused.length);
      return sleep(ms);
    };
    await time.pass(1_000);
    assert.deepEqual([counts, refused.length, limiter.waiting], [[64, 128], 150, 0]);
  });

  it('is all refused in the end', () => {
    enter('1 2');
    enter('x', { kind: 'bought' });
    limiter.close();
    assert.deepEqual([refused.toSorted(), limiter.waiting], [['1', '2', 'x'], 0]);
  });
});

describe('a limiter', () => {
  type Step = 'come' | 'end' | 'give up';

  it('serves in order, never more at once than there are places, and loses none', () => {
    const step = fc.constantFrom<Step>('come', 'come', 'end', 'give up');
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), (most, steps) => {
        const limiter = new Limiter({ most, waitMs: Number.POSITIVE_INFINITY });
        const waiting: Admitted[] = [];
        const running: Admitted[] = [];
        for (const what of steps) {
          if (what === 'come') {
            let started = false;
            const admitted = limiter.enter({
              start(one) {
                started = true;
                if (waiting.length > 0) assert.equal(waiting.shift(), one, 'first come, first served');
                running.push(one);
              },
              refuse: () => assert.fail('refused'),
            });
            if (!started) waiting.push(admitted);
          } else if (what === 'give up') {
            const [leaver] = waiting.splice(Math.floor(waiting.length / 2), 1);
            leaver?.leave();
            leaver?.leave();
          } else {
            const ended = running.shift();
            ended?.leave();
            ended?.leave();
          }
          assert.deepEqual([limiter.taken, limiter.waiting], [running.length, waiting.length]);
          assert.ok(running.length <= most);
          assert.ok(waiting.length === 0 || running.length === most, 'none waits beside a free place');
        }
      }),
      { numRuns: 300 },
    );
  });

  /** Enters clients, and notes what becomes of each. */
  function entrance(bounds: ConstructorParameters<typeof Limiter>[0]) {
    const limiter = new Limiter(bounds);
    const log: string[] = [];
    const enter = (client: string, more: { holders?: string[]; size?: number } = {}): Admitted =>
      limiter.enter({
        ...{ client, ...more },
        start: () => log.push(client),
        refuse: (reason: Refusal) => log.push(`${client} ${reason}`),
      });
    return { limiter, log, enter };
  }

  it('lets a client that has its share wait, and others go past it', () => {
    const { log, enter } = entrance({ most: 9, each: 1 });
    const first = enter('a');
    enter('a');
    enter('b');
    assert.deepEqual(log, ['a', 'b']);
    first.leave();
    assert.deepEqual(log, ['a', 'b', 'a']);
  });

  it('counts each of the holders, and lets others go past one of which one has its share', () => {
    const { log, enter } = entrance({ most: 9, each: (holder) => (holder === 'payer' ? 1 : 2) });
    const first = enter('a', { holders: ['payer', 'r'] });
    enter('b', { holders: ['payer', 's'] });
    enter('b', { holders: ['other', 'r'] });
    enter('c', { holders: ['third', 'r'] });
    assert.deepEqual(log, ['a', 'b']);
    first.leave();
    assert.deepEqual(log, ['a', 'b', 'b', 'c']);
  });

  it('starts nothing while it is closed', () => {
    let open = false;
    const { limiter, log, enter } = entrance({ most: 9, isOpen: () => open });
    enter('a');
    assert.deepEqual(log, []);
    open = true;
    limiter.serve();
    assert.deepEqual(log, ['a']);
  });

  it('lets nothing smaller go past a large one for which there is no room', () => {
    const { log, enter } = entrance({ most: 10 });
    const first = enter('a', { size: 6 });
    const large = enter('large', { size: 8 });
    enter('small', { size: 1 });
    assert.deepEqual(log, ['a']);
    large.leave();
    assert.deepEqual(log, ['a', 'small']);
    first.leave();
  });

  it('refuses at once where as many wait as may', () => {
    const { log, enter } = entrance({ most: 1, waiting: 8, eachWaiting: 'share' });
    for (let asked = 0; asked < 6; asked += 1) enter('a');
    assert.deepEqual(log, ['a', 'a full']);
    enter('b');
    assert.equal(log.length, 2);
  });

  it('starts many that end at once, without one stack for all', () => {
    const limiter = new Limiter({ most: 1 });
    const first = limiter.enter({ start: () => undefined, refuse: () => undefined });
    let started = 0;
    for (let asked = 0; asked < 20_000; asked += 1)
      limiter.enter({
        start(admitted) {
          started += 1;
          admitted.leave();
        },
        refuse: () => undefined,
      });
    first.leave();
    assert.deepEqual([started, limiter.taken, limiter.waiting], [20_000, 0, 0]);
  });
});
