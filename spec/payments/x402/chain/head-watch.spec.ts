import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { Head } from '../../../../src/payments/x402/chain/chain-answers.ts';
import {
  CLOCK_HEADS,
  type HeadWatch,
  REGULAR_HEADS,
  STALL_MS,
  watchHeads,
} from '../../../../src/payments/x402/chain/chain-health.ts';

/** Between two looks, milliseconds. */
const LOOK_MS = 2_000;
const NOON_S = 1_800_000_000;

describe('the heads of a chain', () => {
  let clock: number;
  let clockErrorS: number;
  let watch: HeadWatch;
  let head: Head;

  const open = (byTime: 'always' | 'seen' | 'never'): void => {
    clock = 0;
    clockErrorS = 0;
    head = { number: 100n, timestamp: NOON_S, baseFee: 0n };
    watch = watchHeads({
      byTime,
      now: () => clock,
      wall: () => (NOON_S + clockErrorS) * 1_000 + clock,
    });
    watch.saw(head);
  };
  beforeEach(() => open('seen'));

  /** The chain makes a block every so many seconds, and is looked at every two. */
  const blocks = (count: number, intervalS: number): void => {
    for (let made = 0; made < count; made += 1) {
      const due = (head.timestamp + intervalS - NOON_S) * 1_000;
      while (clock + LOOK_MS < due) look();
      clock = due;
      head = { ...head, number: head.number + 1n, timestamp: head.timestamp + intervalS };
      watch.saw(head);
    }
  };
  const look = (): void => {
    clock += LOOK_MS;
    watch.saw(head);
  };
  /** Looks, and never a new block. */
  const stands = (ms: number): void => {
    for (const ends = clock + ms; clock < ends; ) look();
  };

  describe('that stand still', () => {
    it('are a stall after a minute, where blocks came by time', () => {
      blocks(REGULAR_HEADS, 2);
      stands(STALL_MS);
      assert.equal(watch.stall(), undefined);
      look();
      assert.match(watch.stall() ?? '', /no block after 105 for 62 s/);
      assert.equal(watch.ageMs(), STALL_MS + LOOK_MS);
    });

    it('are one after ten intervals, where those are long', () => {
      blocks(20, 12);
      stands(120_000);
      assert.equal(watch.stall(), undefined);
      look();
      assert.ok(watch.stall());
    });

    it('are none any more with the next block', () => {
      blocks(REGULAR_HEADS, 2);
      stands(STALL_MS + LOOK_MS);
      blocks(1, 64);
      assert.equal(watch.stall(), undefined);
    });

    it('are none before five regular blocks, nor of blocks that come now and then', () => {
      blocks(REGULAR_HEADS - 1, 2);
      stands(10 * STALL_MS);
      assert.equal(watch.stall(), undefined);
      open('seen');
      for (const intervalS of [2, 7, 2, 30, 2, 90, 2, 11]) blocks(1, intervalS);
      stands(10 * STALL_MS);
      assert.equal(watch.stall(), undefined);
    });

    it('may leave a slot out', () => {
      for (const intervalS of [12, 12, 24, 12, 12]) blocks(1, intervalS);
      stands(122_000);
      assert.ok(watch.stall());
    });

    it('are none where each block was made for a transaction of ours', () => {
      for (let payment = 0; payment < 20; payment += 1) {
        const ended = watch.settling();
        blocks(1, 2);
        ended();
      }
      stands(10 * STALL_MS);
      assert.equal(watch.stall(), undefined);
    });

    it('are one where more blocks came than we sent transactions', () => {
      for (let payment = 0; payment < REGULAR_HEADS; payment += 1) {
        const ended = watch.settling();
        clock += 2 * LOOK_MS;
        head = { ...head, number: head.number + 2n, timestamp: head.timestamp + 4 };
        watch.saw(head);
        ended();
        blocks(1, 2);
      }
      stands(STALL_MS + LOOK_MS);
      assert.ok(watch.stall());
    });

    it('are none on a local chain, and one on a mainnet from the beginning', () => {
      open('never');
      blocks(20, 2);
      stands(10 * STALL_MS);
      assert.equal(watch.stall(), undefined);
      open('always');
      stands(STALL_MS + LOOK_MS);
      assert.ok(watch.stall());
    });

    it('are none because nobody looked: a process that stood still has seen nothing', () => {
      blocks(REGULAR_HEADS, 2);
      clock += 10 * STALL_MS;
      assert.equal(watch.stall(), undefined);
    });

    it('are not moved by a head that is lower: another node behind the balancer is behind', () => {
      blocks(REGULAR_HEADS, 2);
      for (let looks = 0; looks < 40; looks += 1) {
        clock += LOOK_MS;
        watch.saw({ ...head, number: head.number - BigInt(looks % 3) });
      }
      assert.ok(watch.stall());
    });
  });

  describe('and our clock', () => {
    it('agree', () => {
      blocks(20, 2);
      assert.equal(watch.clock(), undefined);
    });

    for (const [what, errorS, intervalS, wrong] of [
      ['25 hours ahead', 90_000, 2, true],
      ['25 hours behind', -90_000, 2, true],
      ['30 s behind', -30, 2, false],
      ['31 s behind', -31, 2, true],
      ['30 s and an interval ahead', 42, 12, false],
      ['a second more', 43, 12, true],
    ] as const)
      it(`${what}: ${wrong ? 'wrong' : 'right'}, after three new heads`, () => {
        clockErrorS = errorS;
        // The pace is known from before.
        blocks(CLOCK_HEADS - 1, intervalS);
        assert.equal(watch.clock(), undefined);
        blocks(1, intervalS);
        assert.equal(watch.clock() !== undefined, wrong);
      });

    it('are right again with one head that says so', () => {
      clockErrorS = 90_000;
      blocks(CLOCK_HEADS, 2);
      assert.match(watch.clock() ?? '', /90000 s ahead/);
      clockErrorS = 0;
      blocks(1, 2);
      assert.equal(watch.clock(), undefined);
    });

    it('are not compared by a head that had been there for long, nor while the chain stands still', () => {
      stands(600_000);
      for (let blocksMade = 0; blocksMade < 5; blocksMade += 1) {
        // Nobody looked for a minute, in which its block was made.
        clock += 60_000;
        head = { ...head, number: head.number + 1n, timestamp: NOON_S + clock / 1_000 - 50 };
        watch.saw(head);
      }
      assert.equal(watch.clock(), undefined);
    });

    it('are compared on a local chain too', () => {
      open('never');
      clockErrorS = 90_000;
      blocks(CLOCK_HEADS, 2);
      assert.ok(watch.clock());
    });
  });
});
