import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { Limiter } from '../../../src/limiter.ts';
import {
  ALL_SETTLEMENTS,
  createUnpaidWork,
  limitSettlements,
  PAYER_SETTLEMENTS,
  PAYER_WAITERS,
  SLOT_WAIT_MS,
  type UnpaidWork,
  type UnpaidWorkLimits,
} from '../../../src/payments/settlement/places.ts';
import { PEER_CONNECTIONS } from '../../../src/payments/x402/chain/http-json.ts';
import { rest, type VirtualTime, virtualTime } from './virtual-time.ts';

describe('slots for settlements', () => {
  let time: VirtualTime;
  let slots: Limiter;
  let running: { readonly payer: string; readonly end: (how?: Error) => void }[];
  beforeEach(() => {
    time = virtualTime();
    slots = limitSettlements(time);
    running = [];
  });

  /** A settlement that runs until it is ended. */
  const settle = async (payer: string): Promise<'settled' | 'crowded'> => {
    const settled = await slots.within(payer, () => {
      const { promise, resolve, reject } = Promise.withResolvers<'settled'>();
      running.push({ payer, end: (how) => (how === undefined ? resolve('settled') : reject(how)) });
      return promise;
    });
    return settled ?? 'crowded';
  };
  const settleAll = (payer: string, count: number) => Array.from({ length: count }, () => settle(payer));
  const fill = (count: number) => Array.from({ length: count }, (_, n) => settle(`payer ${n}`));
  const end = async (how?: Error): Promise<void> => {
    running.shift()?.end(how);
    await rest();
  };

  it('are fewer than the connections to a peer, and one payer has few of them', () => {
    assert.ok(ALL_SETTLEMENTS < PEER_CONNECTIONS);
    assert.ok(PAYER_SETTLEMENTS * 10 < ALL_SETTLEMENTS);
  });

  it('one that is free now is taken at once; where there is none nothing runs and nothing waits', async () => {
    settleAll('0xab', PAYER_SETTLEMENTS - 1);
    const { promise, resolve } = Promise.withResolvers<string>();
    const last = slots.atOnce('0xab', () => promise);
    assert.ok(last !== undefined);
    assert.equal(
      slots.atOnce('0xab', () => assert.fail('ran without a slot')),
      undefined,
    );
    resolve('settled');
    assert.equal(await last, 'settled');
    assert.equal(await slots.atOnce('0xab', async () => 'the slot came back'), 'the slot came back');
  });

  it('a slot comes back from a settlement that throws', async () => {
    const [failing] = settleAll('0xab', PAYER_SETTLEMENTS);
    const next = settle('0xab');
    const failed = assert.rejects(failing ?? Promise.resolve(), /broke/);
    await end(new Error('broke'));
    await failed;
    for (const { end: finish } of running) finish();
    assert.equal(await next, 'settled');
  });

  it('the waiting calls of one payer have their bound: one more is crowded at once', async () => {
    settleAll('0xab', PAYER_SETTLEMENTS);
    const answers: string[] = [];
    for (const waiter of settleAll('0xab', PAYER_WAITERS)) void waiter.then((how) => answers.push(how));
    await rest();
    assert.deepEqual(answers, []);
    assert.equal(await settle('0xab'), 'crowded');
    assert.deepEqual(answers, []);
  });

  it('all payers together have their bound; a call that waits is served in turn, past those whose own slots are taken', async () => {
    settleAll('0xab', PAYER_SETTLEMENTS);
    fill(ALL_SETTLEMENTS - PAYER_SETTLEMENTS);
    const busy = settle('0xab');
    const first = settle('0xcd');
    settle('0xef');
    await rest();
    assert.equal(running.length, ALL_SETTLEMENTS);
    running.pop()?.end();
    await rest();
    assert.deepEqual([running.length, running.at(-1)?.payer], [ALL_SETTLEMENTS, '0xcd']);
    await time.pass(SLOT_WAIT_MS);
    assert.equal(await busy, 'crowded');
    running.pop()?.end();
    assert.equal(await first, 'settled');
  });
});

const WINDOW_MS = 60_000;
type WorkFor = Parameters<UnpaidWork['enter']>[0];
type Entered = Awaited<ReturnType<UnpaidWork['enter']>>;
type Place = Exclude<Entered, string>;

describe('the budget of unpaid work', () => {
  let time: VirtualTime;
  let limits: UnpaidWorkLimits;
  let work: UnpaidWork;
  let calls: number;
  beforeEach(() => {
    time = virtualTime();
    limits = { perResource: 2, perNetwork: 3, all: 4, windowMs: WINDOW_MS };
    work = createUnpaidWork(() => limits, time);
    calls = 0;
  });

  /** A call of a payer of its own, from a network and for a resource of its own, unless given. */
  const callOf = (changes: Partial<WorkFor> = {}): WorkFor => {
    calls += 1;
    const n = calls;
    const call = { payId: `pay ${n}`, payer: `0x${n}`, resourceId: `resource ${n}`, network: `network ${n}` };
    return { ...call, atMostMs: 60_000, ...changes };
  };
  const enter = (changes?: Partial<WorkFor>) => work.enter(callOf(changes));
  const placed = async (changes?: Partial<WorkFor>): Promise<Place> => {
    const entered = await enter(changes);
    if (typeof entered === 'string') throw new Error(`no place: ${entered}`);
    return entered;
  };
  const unpaid = async (changes?: Partial<WorkFor>): Promise<void> => (await placed(changes)).leave('unpaid');
  /** How a call ends that waits, once it has an answer. */
  const waits = (changes?: Partial<WorkFor>) => {
    const waiter = { entered: undefined as Entered | undefined };
    void enter(changes).then((entered) => {
      waiter.entered = entered;
    });
    return waiter;
  };
  const isSold = (resourceId = 'resource', network = 'network'): boolean => !work.exhausted(resourceId, network);

  const bounds: readonly (readonly [whose: string, same: Partial<WorkFor>, limit: number])[] = [
    ['one resource', { resourceId: 'one' }, 2],
    ['one network', { network: 'one' }, 3],
    ['all', {}, 4],
  ];
  for (const [whose, same, limit] of bounds) {
    it(`calls under way: ${whose} has ${limit} places; one more waits, and has the first that comes free`, async () => {
      const places: Place[] = [];
      for (let n = 0; n < limit; n += 1) places.push(await placed(same));
      const next = waits(same);
      await time.pass(SLOT_WAIT_MS - 1);
      assert.equal(next.entered, undefined);
      places[0]?.leave('settled');
      await rest();
      assert.equal(typeof next.entered, 'object');
    });

    it(`calls that ended unpaid: ${whose} has ${limit}, and then no more before the window is over`, async () => {
      for (let n = 0; n < limit; n += 1) {
        assert.equal(isSold(same.resourceId, same.network), true);
        await unpaid(same);
      }
      assert.equal(isSold(same.resourceId, same.network), false);
      assert.equal(await enter(same), 'exhausted');
      await time.pass(WINDOW_MS - 1);
      assert.equal(await enter(same), 'exhausted');
      await time.pass(1);
      assert.equal(isSold(same.resourceId, same.network), true);
      await placed(same);
    });
  }

  it('other resources and networks are sold on', async () => {
    await unpaid({ resourceId: 'one' });
    await unpaid({ resourceId: 'one' });
    assert.deepEqual([isSold('one'), isSold('two')], [false, true]);
    await placed({ resourceId: 'two' });
  });

  it('a call that is paid leaves nothing behind', async () => {
    for (let n = 0; n < 10; n += 1) (await placed({ resourceId: 'one' })).leave('settled');
    assert.equal(isSold('one'), true);
  });

  it('unpaid calls and calls under way count together; full of both, a call is crowded and the resource is sold', async () => {
    await unpaid({ resourceId: 'one' });
    await placed({ resourceId: 'one' });
    const next = waits({ resourceId: 'one' });
    assert.equal(isSold('one'), true);
    await time.pass(SLOT_WAIT_MS);
    assert.equal(next.entered, 'crowded');
  });

  it('a call that waits while the last place ends unpaid is told that none comes free', async () => {
    await unpaid({ resourceId: 'one' });
    const last = await placed({ resourceId: 'one' });
    const next = waits({ resourceId: 'one' });
    last.leave('unpaid');
    await time.pass(SLOT_WAIT_MS);
    assert.equal(next.entered, 'exhausted');
  });

  it('a payer, however spelled, has one call at a time, for whatever resource', async () => {
    const first = await placed({ payer: '0xAB' });
    const second = waits({ payer: '0xab' });
    await rest();
    assert.equal(second.entered, undefined);
    await placed();
    first.leave('settled');
    await rest();
    assert.equal(typeof second.entered, 'object');
  });

  it('a payer’s call that ended unpaid does not keep it from the next one', async () => {
    await unpaid({ payer: '0xab' });
    await placed({ payer: '0xab' });
  });

  it('the waiting calls of one payer have their bound: one more is crowded at once', async () => {
    const first = await placed({ payer: '0xab' });
    const waiters = Array.from({ length: PAYER_WAITERS }, () => waits({ payer: '0xAB' }));
    assert.equal(await enter({ payer: '0xab' }), 'crowded');
    await placed({ payer: '0xcd' });
    first.leave('settled');
    await rest();
    assert.equal(waiters.filter(({ entered }) => typeof entered === 'object').length, 1);
    waits({ payer: '0xab' });
    assert.equal(await enter({ payer: '0xab' }), 'crowded');
  });

  for (const [whose, same, name] of [
    ['one resource', { resourceId: 'one' }, 'perResource'],
    ['one network', { network: 'one' }, 'perNetwork'],
    ['all', {}, 'all'],
  ] as const)
    for (const [limit, most] of [
      [1, 8],
      [10, 10],
    ] as const)
      it(`${most} calls of ${whose} wait where ${limit} may run; one more is crowded at once`, async () => {
        limits = { perResource: 99, perNetwork: 99, all: 99, windowMs: WINDOW_MS, [name]: limit };
        for (let n = 0; n < limit; n += 1) await placed(same);
        const waiters = Array.from({ length: most }, () => waits(same));
        assert.equal(await enter(same), 'crowded');
        assert.deepEqual(new Set(waiters.map(({ entered }) => entered)), new Set([undefined]));
      });

  it('one that is paid after all counts no more, and the place goes to a call that waits', async () => {
    const call = callOf({ resourceId: 'one' });
    const place = await work.enter(call);
    assert.ok(typeof place !== 'string');
    place.leave('unpaid');
    await placed({ resourceId: 'one' });
    const next = waits({ resourceId: 'one' });
    work.paid('pay of another');
    await rest();
    assert.equal(next.entered, undefined);
    work.paid(call.payId);
    await rest();
    assert.equal(typeof next.entered, 'object');
  });

  it('a payment that ends unpaid twice counts once, from the last time', async () => {
    const call = callOf({ resourceId: 'one' });
    for (const _ of [1, 2]) {
      const place = await work.enter(call);
      assert.ok(typeof place !== 'string');
      place.leave('unpaid');
      await time.pass(WINDOW_MS / 2);
    }
    assert.equal(isSold('one'), true);
    await unpaid({ resourceId: 'one' });
    assert.equal(isSold('one'), false);
    await time.pass(WINDOW_MS / 2);
    assert.equal(isSold('one'), true);
  });

  it('a reload that lowers a limit counts for the next call, and those under way go on', async () => {
    const places = [await placed({ resourceId: 'one' }), await placed({ resourceId: 'one' })];
    limits = { ...limits, perResource: 1 };
    const next = waits({ resourceId: 'one' });
    places[0]?.leave('settled');
    await rest();
    assert.equal(next.entered, undefined);
    places[1]?.leave('settled');
    await rest();
    assert.equal(typeof next.entered, 'object');
  });

  it('a reload that raises a limit sells again at once', async () => {
    for (let n = 0; n < 2; n += 1) await unpaid({ resourceId: 'one' });
    assert.equal(isSold('one'), false);
    limits = { ...limits, perResource: 3 };
    assert.equal(isSold('one'), true);
    await placed({ resourceId: 'one' });
  });

  it('a reload that shortens the window counts for what ends from then on', async () => {
    await unpaid();
    limits = { ...limits, windowMs: 1_000 };
    for (let n = 0; n < 2; n += 1) await unpaid({ resourceId: 'one' });
    assert.equal(isSold('one'), false);
    await time.pass(1_000);
    assert.equal(isSold('one'), true);
  });

  it('a place that comes free by time goes to a call that waits', async () => {
    await unpaid({ resourceId: 'one' });
    await time.pass(WINDOW_MS - 1_000);
    await placed({ resourceId: 'one' });
    const next = waits({ resourceId: 'one' });
    await time.pass(SLOT_WAIT_MS);
    assert.equal(typeof next.entered, 'object');
  });
});
