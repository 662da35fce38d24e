import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { createChain } from '../../../../src/payments/x402/chain/chain.ts';
import { type ChainHealth, LOGS_LAG_MS, watchChain } from '../../../../src/payments/x402/chain/chain-health.ts';
import { evidenceQuery } from '../../../../src/payments/x402/chain/evidence-query.ts';
import { createRpc, type Rpc } from '../../../../src/payments/x402/chain/rpc.ts';
import { createLocalRail } from '../../../../src/payments/x402/local/local-rail.ts';
import { trustingOnly, withoutWrongClock } from '../../../../src/payments/x402/verify/trust.ts';
import type { Candidate, Examination } from '../../../../src/payments/x402/verify/verify.ts';
import type { PaymentRail, Proof } from '../../../../src/payments/x402/wire/types.ts';
import { type SilentNode, startSilentNode } from '../../../support/silent-node.ts';
import { openStage, type Stage, settleThrough } from '../stage.ts';

describe('what the readings of a chain say of its node', () => {
  let stage: Stage;
  let node: SilentNode;
  let rpc: Rpc;
  let clock = 0;
  let wallErrorMs = 0;
  let health: ChainHealth;
  let rail: PaymentRail;
  let told: string[] = [];

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
    told = [];
    const line = (level: string) => (facts: object) => void told.push(`${level} ${(facts as { fault: string }).fault}`);
    rail = trustingOnly(health, local, { info: line('info'), warn: line('warn') });
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
      assert.deepEqual(told, ['warn missing', 'info missing'], 'each change is told once');
    });

    it('is no fault of a node that is dead meanwhile, nor of a transaction that nobody named', async () => {
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
      assert.equal((await rail.reconcile(fresh, stage.offer, undefined)).kind, 'unknown');
      assert.equal((await rail.reconcile(proof, stage.offer, transaction)).kind, 'unknown');
      await node.become('honest');
      await rail.check();
      assert.equal((await rail.verify(fresh, stage.offer)).kind, 'valid');
      assert.equal((await rail.reconcile(fresh, stage.offer, undefined)).kind, 'open');
      assert.equal((await rail.reconcile(proof, stage.offer, transaction)).kind, 'settled');
    });
  });

  describe('a node that shows no new block', () => {
    it('fails the provider after a minute, until a block comes', async () => {
      const { proof } = await stage.actors.buyer();
      const start = Math.floor(Date.now() / 1_000);
      for (let second = 1; second <= 6; second += 1) {
        await stage.local.request('evm_setNextBlockTimestamp', [start + 2 * second]);
        await blocks(1);
      }
      await node.become('stuck');
      for (let looks = 0; looks < 31; looks += 1) {
        assert.equal(await rail.check(), undefined);
        clock += 2_000;
      }
      assert.match((await rail.check())?.cause ?? '', /^stall: no block after/);
      assert.equal((await rail.verify(proof, stage.offer)).kind, 'unavailable');
      await node.become('honest');
      await blocks(1);
      assert.equal(await rail.check(), undefined);
      assert.equal((await rail.verify(proof, stage.offer)).kind, 'valid');
    });
  });

  describe('a clock that is 25 hours off', () => {
    const examination = (step: 'window' | 'offer'): Examination =>
      ({
        payId: '',
        refusal: { step, reason: '' },
        checkSignature: async () => assert.fail(),
      }) as unknown as Examination;
    const refusalOf = (step: 'window' | 'offer') =>
      withoutWrongClock(health, () => examination(step))({} as Candidate).refusal;

    for (const hours of [-25, 25])
      it(`${hours} h: no window is judged by it, and no proof gets a verdict`, async () => {
        const { proof } = await stage.actors.buyer();
        wallErrorMs = hours * 3_600_000;
        await blocks(3);
        assert.ok(refusalOf('window'));
        await blocks(1);
        assert.equal(health.fault()?.kind, 'clock');
        assert.equal(refusalOf('window'), undefined);
        assert.ok(refusalOf('offer'));
        assert.equal((await rail.verify(proof, stage.offer)).kind, 'unavailable');
        wallErrorMs = 0;
        await blocks(1);
        assert.equal(health.fault(), undefined);
        assert.ok(refusalOf('window'));
        assert.equal((await rail.verify(proof, stage.offer)).kind, 'valid');
      });
  });
});
