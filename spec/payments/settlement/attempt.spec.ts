import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { PaymentLedger, PaymentRecord } from '../../../src/payments/ledger/ledger.ts';
import {
  createLeases,
  LEASE_MS,
  type Leases,
  LONGEST_LEASE_MS,
  persist,
  RENEW_EVERY_MS,
} from '../../../src/payments/settlement/attempt.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { seedOf } from '../../../verification/chaos/seed.ts';
import { rest, skippedTime, virtualTime } from './virtual-time.ts';
import { freshTerms, NOON_MS, PAID, worldOfEachTest } from './world.ts';

const HOUR_MS = 3_600_000;
const STALLS = Number(process.env['STALLS'] ?? 2_000);
const STALL_MS = 2_000;

describe('leases', () => {
  const world = worldOfEachTest();
  const { broken, record } = world;
  let time: ReturnType<typeof virtualTime>;
  let leases: Leases;

  /**
   * Both clocks run together; a process that is paused is one whose time stands while the store's
   * goes on.
   */
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 100) {
      world.clock += Math.min(left, 100);
      await time.pass(Math.min(left, 100));
    }
  };
  const reserve = async (owner: string): Promise<PaymentRecord> => {
    const reservation = await world.ledger.reserve({ terms: world.terms, owner, leaseMs: LEASE_MS });
    assert.ok(reservation.kind === 'granted', `${owner} got ${reservation.kind}`);
    return reservation.record;
  };
  const reservation = async (): Promise<string> =>
    (await world.ledger.reserve({ terms: world.terms, owner: 'another', leaseMs: LEASE_MS })).kind;
  const counting = (): { readonly ledger: PaymentLedger; renewals: number } => {
    const counted = {
      renewals: 0,
      ledger: broken({
        renew: (claim, leaseMs) => {
          counted.renewals += 1;
          return world.ledger.renew(claim, leaseMs);
        },
      }),
    };
    return counted;
  };

  beforeEach(() => {
    time = virtualTime();
    leases = createLeases(broken({}), time);
  });

  it('a running attempt keeps its record for as long as it works', async () => {
    leases.hold(await reserve('first'), HOUR_MS);
    await pass(60_000);
    assert.equal(await reservation(), 'in_flight');
    assert.ok(
      ((await record())?.leaseUntil ?? 0) >= world.clock + LEASE_MS - 2 * RENEW_EVERY_MS,
      'and a death is found within seconds',
    );
  });

  it(`survives ${STALLS} stalls of its process of up to two seconds, wherever between the renewals they begin`, async () => {
    leases.hold(await reserve('first'), Number.POSITIVE_INFINITY);
    const seed = seedOf('stalls');
    for (let stall = 0; stall < STALLS; stall += 1) {
      await pass(Math.floor(seed.between(1, RENEW_EVERY_MS)));
      const stillMs = Math.floor(seed.between(1, STALL_MS));
      world.clock += stillMs;
      assert.equal(await reservation(), 'in_flight', `after ${stillMs} ms in stall ${stall}`);
      // What was due meanwhile is done first.
      await time.pass(stillMs);
    }
    assert.equal((await record())?.owner, 'first');
  });

  it('a process that stands still loses it, and does not win it back', async () => {
    leases.hold(await reserve('first'), HOUR_MS);
    await pass(10_000);
    world.clock += LEASE_MS;
    await reserve('second');
    await pass(30_000);
    assert.equal((await record())?.owner, 'second');
    assert.ok(
      (await record())?.fence === 2 && ((await record())?.leaseUntil ?? 0) < world.clock,
      'its lease is not renewed',
    );
    assert.equal(time.sleepers(), 0, 'nothing runs any more');
  });

  it('of an attempt that runs is known here after it ended, until it is dropped or its bound', async () => {
    const refusing = createLeases(broken({ renew: async () => false }), time);
    const first = await reserve('first');
    const lease = refusing.hold(first, 10_000);
    await pass(5_000);
    assert.deepEqual([...refusing.running()], [first.payId]);
    await pass(6_000);
    assert.deepEqual([...refusing.running()], [], 'a bug keeps no record from the reconciler');
    lease.drop();
    refusing.hold(first, 10_000).drop();
    assert.deepEqual([...refusing.running()], []);
  });

  it('is longer where the timer of its renewals is late, and not without bound', async () => {
    const asked: number[] = [];
    const late = { now: () => time.now(), sleep: async (ms: number) => time.sleep(ms + lateMs) };
    let lateMs = 0;
    const shared = createLeases(
      broken({
        async renew(_claim, leaseMs) {
          asked.push(leaseMs);
          return true;
        },
      }),
      late,
    );
    shared.hold(await reserve('first'), HOUR_MS);
    for (const ms of [0, 200, 60_000]) {
      lateMs = ms;
      await time.pass(2 * 60_000);
    }
    assert.deepEqual([asked[0], asked.includes(LEASE_MS + 2_000), Math.max(...asked)], [LEASE_MS, true, 30_000]);
  });

  it('is not renewed after it was dropped', async () => {
    const lease = leases.hold(await reserve('first'), HOUR_MS);
    await pass(3_000);
    lease.drop();
    lease.drop();
    await pass(LEASE_MS);
    assert.equal(await reservation(), 'granted');
  });

  it('an attempt that is younger than the time between two renewals needs none', async () => {
    const counted = counting();
    const shared = createLeases(counted.ledger, time);
    const held = await reserve('first');
    shared.hold(held, HOUR_MS);
    await pass(RENEW_EVERY_MS / 2);
    shared.hold(held, HOUR_MS).drop();
    shared.hold(held, HOUR_MS);
    await pass(RENEW_EVERY_MS / 2);
    assert.equal(counted.renewals, 1, 'the older one only');
    await pass(RENEW_EVERY_MS);
    assert.equal(counted.renewals, 3);
  });

  it('no bug can hold a record for ever: renewals end at the bound', async () => {
    leases.hold(await reserve('first'), 20_000);
    await pass(20_000);
    assert.equal(await reservation(), 'in_flight');
    await pass(LEASE_MS + 2_000);
    assert.equal(await reservation(), 'granted');
  });

  it('survives a store that is silent for less than the lease', async () => {
    let away = false;
    const ledger = broken({
      renew: (claim, leaseMs) => (away ? world.silent() : world.ledger.renew(claim, leaseMs)),
    });
    createLeases(ledger, time).hold(await reserve('first'), HOUR_MS);
    await pass(4_000);
    away = true;
    await pass(2_400);
    away = false;
    await pass(30_000);
    assert.equal(await reservation(), 'in_flight');
  });

  it('a renewal that hangs holds up no other one, and is not sent a second time meanwhile', async () => {
    const asked: string[] = [];
    const hung = broken({
      renew: (claim, leaseMs) => {
        asked.push(claim.payId);
        return claim.payId === world.terms.payId
          ? new Promise<boolean>(() => undefined)
          : world.ledger.renew(claim, leaseMs);
      },
    });
    const shared = createLeases(hung, time);
    const stuck = await reserve('first');
    shared.hold(stuck, HOUR_MS);
    world.terms = freshTerms();
    const other = await reserve('first');
    shared.hold(other, HOUR_MS);
    world.terms = { ...world.terms, payId: stuck.payId };
    await pass(10 * RENEW_EVERY_MS);
    assert.equal(asked.filter((payId) => payId === stuck.payId).length, 1);
    assert.ok(asked.filter((payId) => payId === other.payId).length > 5);
  });

  it('of a busy process keeps its length when another call asks', async () => {
    const leaseMs = LONGEST_LEASE_MS;
    await world.ledger.reserve({ terms: world.terms, owner: 'first', leaseMs });
    assert.equal((await world.settleOnce()).kind, 'in_flight');
    assert.equal((await record())?.leaseUntil, world.clock + leaseMs);
  });

  it('of a store whose clock went back is cut to its length', async () => {
    await reserve('first');
    world.clock -= HOUR_MS;
    const asked = { terms: world.terms, owner: 'second', leaseMs: LEASE_MS, longestMs: LEASE_MS };
    const busy = await world.ledger.reserve(asked);
    assert.ok(busy.kind === 'in_flight' && busy.leaseLeftMs === LEASE_MS);
    world.clock += LEASE_MS;
    assert.equal((await world.ledger.reserve(asked)).kind, 'granted');
  });

  it('a process that ends gives everything up at once, whatever the store answers', async () => {
    leases.hold(await reserve('first'), HOUR_MS);
    await leases.releaseAll();
    assert.equal((await record())?.leaseUntil, 0);
    const mute = createLeases(broken({ note: world.silent }), time);
    mute.hold(await reserve('second'), HOUR_MS);
    await mute.releaseAll();
    await pass(LEASE_MS);
    assert.ok(((await record())?.leaseUntil ?? 0) <= world.clock, 'and what could not be given up ends by itself');
  });

  it('one timer serves all leases of a process, and starts again after all were dropped', async () => {
    const counted = counting();
    const shared = createLeases(counted.ledger, time);
    const held = await reserve('first');
    const drops = Array.from({ length: 50 }, () => shared.hold(held, HOUR_MS));
    assert.equal(time.sleepers(), 1);
    await pass(4_000);
    assert.ok(counted.renewals > 0);
    for (const { drop } of drops) drop();
    await pass(4_000);
    assert.equal(time.sleepers(), 0);
    world.clock = NOON_MS;
    const before = counted.renewals;
    shared.hold(held, HOUR_MS);
    await pass(4_000);
    assert.ok(counted.renewals > before);
  });
});

describe('a reservation that the store never answered', () => {
  const world = worldOfEachTest();
  const { settleOnce, settleAfter, broken, record } = world;

  /** The first reservation is carried out by a store that hangs until its call is gone. */
  const hanging = (mayStand = true): PaymentLedger => {
    let asked = 0;
    return broken({
      async reserve(command) {
        asked += 1;
        if (asked > 1) return world.ledger.reserve(command);
        await world.ledger.reserve(command);
        throw new StoreError('silent', mayStand);
      },
    });
  };

  it('is given back as soon as the store answers: the same proof need not wait for an idle lease', async () => {
    await assert.rejects(settleAfter({}, hanging()), StoreError);
    await rest();
    assert.equal(await record(), undefined);
    assert.equal((await settleOnce()).kind, 'paid');
  });

  it('of a settlement that is under way already: the lease is given up, the record stays', async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    await settleOnce();
    world.peer.script.reconcile = async () => PAID;
    await assert.rejects(settleOnce({ left: undefined }, hanging()), StoreError);
    await rest();
    const { state, leaseUntil } = (await record()) ?? {};
    assert.deepEqual([state, leaseUntil], ['settling', 0]);
    assert.equal((await settleOnce()).kind, 'paid');
  });

  it('and that certainly was not written is not discarded', async () => {
    await assert.rejects(settleAfter({}, hanging(false)), StoreError);
    await rest();
    assert.equal((await record())?.state, 'reserved', 'this one stands for another call that runs');
  });
});

describe('a write that must not be lost', () => {
  const late = new StoreError('no answer');
  const away = new StoreError(new Error('no connection'), false);
  const done = { kind: 'done' } as const;
  const fenced = { kind: 'fenced' } as const;
  /** How the attempts fail, what the last one is answered, and the pauses, milliseconds. */
  const rows: readonly (readonly [
    what: string,
    failures: readonly Error[],
    result: object,
    slept: readonly number[],
  ])[] = [
    ['is repeated until the store answers, with growing pauses', [late, late], done, [50, 250]],
    ['is not repeated after an answer that is no success', [], fenced, []],
    [
      'is unwritten when the store stays silent for longer than a second, and may stand',
      [late, late, late, late],
      { kind: 'unwritten', cause: late, mayStand: true },
      [50, 250, 1_000],
    ],
    [
      'is marked when it was certainly never made',
      [away, away, away, away],
      { kind: 'unwritten', cause: away, mayStand: false },
      [50, 250, 1_000],
    ],
    [
      'may stand when one attempt may',
      [late, away, away, away],
      { kind: 'unwritten', cause: away, mayStand: true },
      [50, 250, 1_000],
    ],
  ];
  for (const [what, failures, result, slept] of rows)
    it(what, async () => {
      const time = skippedTime();
      const left = [...failures];
      const written = await persist(async () => {
        const failure = left.shift();
        if (failure !== undefined) throw failure;
        return result;
      }, time);
      assert.deepEqual([written, left, time.slept], [result, [], slept]);
    });
});
