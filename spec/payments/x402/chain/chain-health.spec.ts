import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { createChain, evidenceQuery } from '../../../../src/payments/x402/chain/chain.ts';
import {
  type ChainHealth,
  CLOCK_HEADS,
  guardRail,
  type HeadWatch,
  LOGS_LAG_MS,
  REGULAR_HEADS,
  STALL_MS,
  watchChain,
  watchHeads,
} from '../../../../src/payments/x402/chain/chain-health.ts';
import { createRpc, type Head, type Rpc } from '../../../../src/payments/x402/chain/node.ts';
import { createLocalRail } from '../../../../src/payments/x402/local/local-rail.ts';
import type { PaymentRail, Proof } from '../../../../src/payments/x402/wire/types.ts';
import { type SilentNode, startSilentNode } from '../../../support/silent-node.ts';
import { openStage, type Stage, settleThrough } from '../stage.ts';

/** Between two readings, milliseconds. */
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

  /** The chain makes a block every so many seconds, and is read every two. */
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
  /** Readings without a new block. */
  const stands = (ms: number): void => {
    for (const ends = clock + ms; clock < ends; ) look();
  };

  /** Blocks of an even pace, the last one followed by nothing for a while. */
  const stallAfter = (count: number, intervalS: number, standsMs: number): string | undefined => {
    blocks(count, intervalS);
    stands(standsMs);
    return watch.stall();
  };

  describe('that stand still', () => {
    it('are a stall after a minute, where blocks came by time, and none with the next block', () => {
      assert.equal(stallAfter(REGULAR_HEADS, 2, STALL_MS), undefined);
      look();
      assert.match(watch.stall() ?? '', /no block after 105 for 62 s/);
      assert.equal(watch.ageMs(), STALL_MS + LOOK_MS);
      blocks(1, 64);
      assert.equal(watch.stall(), undefined);
    });

    it('are one after ten intervals, where those are long', () => {
      assert.equal(stallAfter(20, 12, 120_000), undefined);
      look();
      assert.ok(watch.stall());
    });

    it('are none before five regular blocks, nor of blocks that come now and then, which may leave a slot out', () => {
      assert.equal(stallAfter(REGULAR_HEADS - 1, 2, 10 * STALL_MS), undefined);
      open('seen');
      for (const intervalS of [2, 7, 2, 30, 2, 90, 2, 11]) blocks(1, intervalS);
      assert.equal(stallAfter(0, 0, 10 * STALL_MS), undefined);
      open('seen');
      for (const intervalS of [12, 12, 24, 12, 12]) blocks(1, intervalS);
      assert.ok(stallAfter(0, 0, 122_000));
    });

    it('are none where each block was made for a transaction of ours, and one where more blocks came', () => {
      for (const others of [0, 2]) {
        open('seen');
        for (let payment = 0; payment < 4 * REGULAR_HEADS; payment += 1) {
          const ended = watch.settling();
          if (others > 0) {
            clock += 2 * LOOK_MS;
            head = { ...head, number: head.number + BigInt(others), timestamp: head.timestamp + 4 };
            watch.saw(head);
            ended();
          }
          blocks(1, 2);
          ended();
        }
        assert.equal(stallAfter(0, 0, 10 * STALL_MS) !== undefined, others > 0);
      }
    });

    it('are none on a local chain, and one on a mainnet from the beginning', () => {
      open('never');
      assert.equal(stallAfter(20, 2, 10 * STALL_MS), undefined);
      open('always');
      assert.ok(stallAfter(0, 0, STALL_MS + LOOK_MS));
    });

    it('are none without readings: a process that stood still has seen nothing', () => {
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

    it('are right again with one head that agrees', () => {
      clockErrorS = 90_000;
      blocks(CLOCK_HEADS, 2);
      assert.match(watch.clock() ?? '', /90000 s ahead/);
      clockErrorS = 0;
      blocks(1, 2);
      assert.equal(watch.clock(), undefined);
    });

    it('are not compared by a head that is old when it is first read, nor while the chain stands still', () => {
      stands(600_000);
      for (let blocksMade = 0; blocksMade < 5; blocksMade += 1) {
        // No reading for a minute, in which its block was made.
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

describe('the health of a node by the readings of its chain', () => {
  let stage: Stage;
  let node: SilentNode;
  let rpc: Rpc;
  let clock = 0;
  let wallErrorMs = 0;
  let health: ChainHealth;
  let rail: PaymentRail;
  let logged: string[] = [];

  before(async () => {
    stage = await openStage();
    node = await startSilentNode(stage.local.rpcUrl);
    rpc = createRpc(node.url);
  });
  after(async () => {
    await rpc.close();
    await node.stop();
    await stage.close();
  });
  beforeEach(async () => {
    await node.become('honest');
    clock = 0;
    wallErrorMs = 0;
    health = watchChain(createChain(rpc), {
      byTime: 'seen',
      now: () => clock,
      wall: () => Date.now() + wallErrorMs,
    });
    const local = await createLocalRail({
      rpc,
      chain: health.chain,
      terms: stage.terms,
      privateKey: stage.local.relayerKey,
    });
    logged = [];
    const line = (level: string) => (facts: object) =>
      void logged.push(`${level} ${(facts as { fault: string }).fault}`);
    rail = guardRail(health, local, { info: line('info'), warn: line('warn') });
  });

  const ask = (proof: Proof, transaction: string | undefined) =>
    health.chain.readEvidence(evidenceQuery(proof, stage.offer, transaction));
  /** A new block each time, as our clock sees it. */
  const blocks = async (count: number): Promise<void> => {
    for (let made = 0; made < count; made += 1) {
      await stage.local.request('evm_mine', []);
      clock += 2_000;
      await health.chain.head();
    }
  };

  describe('a transaction that succeeded, without its logs', () => {
    let proof: Proof;
    let transaction: string | undefined;
    beforeEach(async () => {
      ({ proof } = await stage.actors.buyer());
      ({ transaction } = (await settleThrough(rail, proof, stage.offer)).outcome);
    });

    it('is no fault while the logs may only be late, and one when they stay away', async () => {
      await node.become('logless');
      assert.partialDeepStrictEqual(await ask(proof, transaction), { kind: 'unknown', logsMissing: true });
      assert.equal(health.fault(), undefined);
      clock = LOGS_LAG_MS;
      assert.equal(health.fault(), undefined, 'it was not asked again');
      await ask(proof, transaction);
      assert.equal(health.fault()?.kind, 'missing');
      assert.match(health.fault()?.cause ?? '', new RegExp(transaction ?? '-'));
    });

    it('ends with the logs, which readiness asks for: no new payment would', async () => {
      await node.become('logless');
      await ask(proof, transaction);
      clock = LOGS_LAG_MS;
      assert.partialDeepStrictEqual(await rail.check(), { found: 'unreachable' });
      assert.equal(rail.chainState?.().faults[0]?.kind, 'missing');
      await node.become('honest');
      assert.equal(await rail.check(), undefined);
      assert.equal(await rail.check(), undefined);
      assert.deepEqual(logged, ['warn missing', 'info missing'], 'each change is logged once');
    });

    it('is no fault of a node that is dead meanwhile, nor of an unknown transaction', async () => {
      await node.become('logless');
      assert.equal((await ask(proof, undefined)).kind, 'unknown');
      clock = LOGS_LAG_MS;
      await ask(proof, undefined);
      assert.equal(health.fault(), undefined);
      await ask(proof, transaction);
      clock += 10 * LOGS_LAG_MS;
      await node.become('dead');
      assert.partialDeepStrictEqual(await rail.check(), { found: 'unreachable' });
      assert.equal(health.fault(), undefined);
    });

    it('is none of a foreign transaction that a facilitator named: the payment is found by its own logs', async () => {
      const other = (await settleThrough(rail, (await stage.actors.buyer()).proof, stage.offer)).outcome.transaction;
      for (clock = 0; clock <= LOGS_LAG_MS; clock += LOGS_LAG_MS)
        assert.deepEqual(await ask(proof, other), { kind: 'paid', transaction });
      assert.equal(health.fault(), undefined);
    });

    it('stops what is new and leaves open what was begun', async () => {
      const fresh = (await stage.actors.buyer()).proof;
      await node.become('logless');
      await ask(proof, transaction);
      clock = LOGS_LAG_MS;
      await rail.check();
      assert.equal((await rail.verify(fresh, stage.offer)).kind, 'unavailable');
      assert.equal((await rail.reconcile(fresh, stage.offer)).kind, 'unknown');
      assert.equal((await rail.reconcile(proof, stage.offer, { sentBefore: true, transaction })).kind, 'unknown');
      await node.become('honest');
      await rail.check();
      assert.equal((await rail.verify(fresh, stage.offer)).kind, 'valid');
      assert.equal((await rail.reconcile(fresh, stage.offer)).kind, 'open');
      assert.equal((await rail.reconcile(proof, stage.offer, { sentBefore: true, transaction })).kind, 'settled');
    });
  });

  describe('a clock that is 25 hours off', () => {
    for (const hours of [-25, 25])
      it(`${hours} h: no proof gets a verdict`, async () => {
        const { proof } = await stage.actors.buyer();
        wallErrorMs = hours * 3_600_000;
        await blocks(3);
        await blocks(1);
        assert.equal(health.fault()?.kind, 'clock');
        assert.equal((await rail.verify(proof, stage.offer)).kind, 'unavailable');
        wallErrorMs = 0;
        await blocks(1);
        assert.equal(health.fault(), undefined);
        assert.equal((await rail.verify(proof, stage.offer)).kind, 'valid');
      });
  });
});
