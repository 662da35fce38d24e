import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Chain, createChain } from '../../../../src/payments/x402/chain/chain.ts';
import { createRpc } from '../../../../src/payments/x402/chain/node.ts';
import type { PaymentRail, Proof } from '../../../../src/payments/x402/wire/types.ts';
import { type Facilitator, startFacilitator } from '../../../support/facilitator.ts';
import {
  type HostileFacilitator,
  INVENTED_TRANSACTION,
  relayTo,
  type ScriptedAnswer,
  startHostileFacilitator,
} from '../../../support/hostile-facilitator.ts';
import {
  json,
  NO_VERDICT,
  noWriteAhead,
  refusal,
  remoteRail,
  SHARED_DEADLINES,
  spent,
  UNREACHABLE,
} from '../hostile.ts';
import { PRICE_UNITS } from '../signing.ts';
import { openStage, type Stage } from '../stage.ts';

type Rail = PaymentRail & { close(): Promise<void> };

const SPENT = 'invalid_exact_evm_nonce_already_used';

describe('the remote rail over a real chain', () => {
  let stage: Stage;
  let official: Facilitator;
  let first: HostileFacilitator;
  let second: HostileFacilitator;
  const open: Rail[] = [];

  before(async () => {
    stage = await openStage();
    official = await startFacilitator(stage.local);
    first = await startHostileFacilitator(stage.terms.network);
    second = await startHostileFacilitator(stage.terms.network);
  });
  beforeEach(() => {
    first.script({});
    second.script({});
  });
  after(async () => {
    for (const rail of open) await rail.close();
    await Promise.all([first, second, official].map((facilitator) => facilitator.stop()));
    await stage.close();
  });

  /** A new rail each time, so that no facilitator has failed before. */
  const railOver = (urls: readonly string[], deps: Partial<Parameters<typeof remoteRail>[1]> = {}): Rail => {
    const rail = remoteRail(urls, {
      network: stage.terms.network,
      chain: stage.chain,
      deadlines: SHARED_DEADLINES,
      ...deps,
    });
    open.push(rail);
    return rail;
  };
  const one = (): Rail => railOver([first.url], { deadlines: { ...SHARED_DEADLINES, confirmMs: 200 } });
  const both = (deps?: Parameters<typeof railOver>[1]): Rail => railOver([first.url, second.url], deps);
  const settle = (rail: Rail, proof: Proof) => rail.settle(proof, stage.offer, noWriteAhead);
  const paidOnce = async (payer: string): Promise<void> =>
    assert.equal(await stage.local.balanceOf(payer), PRICE_UNITS);
  /** A payer who could pay twice. */
  const payer = () => stage.actors.buyer(2n * PRICE_UNITS);

  describe('with one facilitator', () => {
    it('verifies and settles our proofs where it is the official one', async () => {
      const rail = one();
      const relay = relayTo(official.url);
      first.script({ verify: relay, settle: relay, supported: relay });
      const { account, proof } = await stage.actors.buyer();
      assert.equal(await rail.check(), undefined);
      assert.deepEqual(await rail.verify(proof, stage.offer), { kind: 'valid' });
      const settlement = await settle(rail, proof);
      assert.equal(settlement.kind, 'settled');
      assert.match(settlement.transaction ?? '', /^0x[0-9a-f]{64}$/);
      assert.equal(await stage.local.balanceOf(account.address), 0n);
      assert.deepEqual(await rail.verify(proof, stage.offer), { kind: 'refused', reason: SPENT, nonceSpent: true });
      // The same store sends it again after a crash at most, and then it knows that it did.
      assert.deepEqual(await settle(rail, proof), { ...settlement, by: 'others' });
      const again = { sentBefore: true, transaction: settlement.transaction };
      assert.deepEqual(await rail.settle(proof, stage.offer, noWriteAhead, again), settlement);
    });

    it('recognises a payment behind a failed simulation: its nonce has paid us', async () => {
      const rail = one();
      const reason = 'invalid_exact_evm_transaction_simulation_failed';
      first.script({ verify: () => json({ isValid: false, invalidReason: reason }) });
      const { proof } = await stage.actors.buyer();
      assert.deepEqual(await rail.verify(proof, stage.offer), { kind: 'refused', reason, nonceSpent: false });
      await stage.actors.submit(proof);
      assert.deepEqual(await rail.verify(proof, stage.offer), { kind: 'refused', reason: SPENT, nonceSpent: true });
    });
  });

  describe('with several facilitators', () => {
    it('is ready while one of them is, and names those that are not', async () => {
      assert.equal(await both().check(), undefined);
      const one = await railOver([UNREACHABLE, second.url]).check();
      assert.equal(one?.found, 'degraded');
      assert.match(one?.cause ?? '', new RegExp(`^${new URL(UNREACHABLE).host}: ECONNREFUSED`));
      first.script({ supported: () => ({ kind: 'hang' }) });
      const begun = performance.now();
      const hanging = await both().check();
      assert.deepEqual([hanging?.found, hanging?.cause.startsWith(new URL(first.url).host)], ['degraded', true]);
      assert.ok(performance.now() - begun < 1_500, 'longer than a readiness check');
      assert.equal((await railOver([UNREACHABLE, 'http://127.0.0.1:10']).check())?.found, 'unreachable');
    });

    it('is not ready without its node, unless claims count', async () => {
      const rpc = createRpc(UNREACHABLE);
      const chain = createChain(rpc);
      assert.equal((await both({ chain }).check())?.found, 'unreachable');
      assert.equal((await both({ chain, confirm: 'facilitator' }).check())?.found, 'degraded');
      await rpc.close();
    });

    it('settles by a well-formed claim, and by no other answer, where claims count', async () => {
      const rail = railOver([first.url], { confirm: 'facilitator', deadlines: { ...SHARED_DEADLINES, confirmMs: 50 } });
      const { account, proof } = await payer();
      const claim = { kind: 'settled', evidence: 'claim', transaction: INVENTED_TRANSACTION };
      assert.deepEqual(await settle(rail, proof), claim);
      assert.equal(
        await stage.local.balanceOf(account.address),
        2n * PRICE_UNITS,
        'nothing moved: the configuration trusts claims',
      );
      for (const answer of [refusal, spent, json({}, 500), json({ success: true, transaction: '0x1' })]) {
        first.script({ settle: () => answer });
        assert.equal((await settle(rail, proof)).kind, 'uncertain');
      }
      const transaction = await stage.actors.submit(proof);
      const shown = { kind: 'settled', evidence: 'logs', transaction };
      assert.deepEqual(await settle(rail, proof), { ...shown, by: 'unknown' }, 'no facilitator named it');
    });

    it('reads the chain after "pending" until the transaction is mined', async () => {
      const { account, proof } = await payer();
      const shown: string[] = [];
      const chain: Chain = {
        ...stage.chain,
        async readEvidence(query, deadlineMs) {
          const evidence = await stage.chain.readEvidence(query, deadlineMs);
          shown.push(evidence.kind);
          if (shown.length === 2) await stage.actors.mine();
          return evidence;
        },
      };
      let transaction = '';
      const { network } = stage.terms;
      first.script({
        settle: async () => {
          transaction = await stage.actors.broadcast(proof);
          return json({ success: false, errorReason: 'settlement_pending', transaction, network });
        },
      });
      const settlement = await settle(both({ chain }), proof);
      assert.deepEqual(settlement, { kind: 'settled', evidence: 'logs', transaction });
      assert.deepEqual(shown, ['open', 'open', 'paid']);
      assert.equal(await stage.local.balanceOf(account.address), PRICE_UNITS);
    });

    const silent: readonly (readonly [string, ScriptedAnswer])[] = NO_VERDICT.filter(
      ([, { kind }]) => kind !== 'hang' && kind !== 'drip',
    );
    for (const [what, answer] of silent)
      it(`asks the next one when one gives no verdict: ${what}`, async () => {
        const proof = (await payer()).proof;
        first.script({ verify: () => answer, settle: () => answer });
        second.script({ settle: relayTo(official.url) });
        assert.deepEqual(await both().verify(proof, stage.offer), { kind: 'valid' });
        assert.deepEqual(first.calls.at(-1)?.body, second.calls.at(-1)?.body, 'the same payload');
        const settlement = await settle(both(), proof);
        assert.equal(settlement.kind === 'settled' && settlement.evidence, 'logs');
        await paidOnce(proof.payload.payload.authorization.from);
      });

    it('asks the next one when one hangs, within the one deadline', async () => {
      const { account, proof } = await payer();
      first.script({ verify: () => ({ kind: 'hang' }), settle: () => ({ kind: 'hang' }) });
      second.script({ settle: relayTo(official.url) });
      const begun = performance.now();
      assert.deepEqual(await both().verify(proof, stage.offer), { kind: 'valid' });
      assert.ok(performance.now() - begun < SHARED_DEADLINES.verifyMs);
      assert.equal((await settle(both(), proof)).kind, 'settled');
      await paidOnce(account.address);
      assert.ok(performance.now() - begun < SHARED_DEADLINES.verifyMs + SHARED_DEADLINES.settleMs);
    });

    it('asks no other facilitator after a refusal', async () => {
      const { proof } = await payer();
      first.script({
        verify: () => json({ isValid: false, invalidReason: 'insufficient_funds' }),
        settle: () => refusal,
      });
      const before = second.calls.length;
      assert.equal((await both().verify(proof, stage.offer)).kind, 'refused');
      assert.equal((await settle(both(), proof)).kind, 'uncertain');
      assert.equal(second.calls.length, before);
    });

    it('reads the chain between them: what the first one settled is not sent to the second', async () => {
      const { account, proof } = await payer();
      const relay = relayTo(official.url);
      first.script({
        settle: async (call) => {
          await relay(call);
          return json({ error: 'bad gateway' }, 502);
        },
      });
      const before = second.calls.length;
      const settlement = await settle(both(), proof);
      assert.equal(settlement.kind === 'settled' && settlement.evidence, 'logs');
      assert.equal(second.calls.length, before);
      await paidOnce(account.address);
    });

    it('leaves "nonce already used" of the second one to the chain, which shows what the first one did', async () => {
      const { account, proof } = await payer();
      let transaction = '';
      first.script({ settle: () => ({ kind: 'reset' }) });
      second.script({
        settle: async () => {
          transaction = await stage.actors.submit(proof);
          return spent;
        },
      });
      // The first one may have been it, and no facilitator has named it.
      const settled = await settle(both(), proof);
      assert.deepEqual(settled, { kind: 'settled', evidence: 'logs', transaction, by: 'unknown' });
      await paidOnce(account.address);
      const { account: canceller, proof: cancelled } = await payer();
      second.script({
        settle: async () => {
          await stage.actors.cancel(canceller, cancelled);
          return spent;
        },
      });
      const settlement = await settle(both(), cancelled);
      assert.equal(settlement.kind === 'refused' && settlement.evidence, 'elsewhere');
    });

    describe('without a chain', () => {
      const withoutChain = (urls: readonly string[]) => railOver(urls, { chain: undefined });

      it('counts a definite refusal only when the first one cannot have sent it', async () => {
        const { proof } = await payer();
        first.script({ settle: () => ({ kind: 'reset' }) });
        second.script({ settle: () => refusal });
        assert.equal((await settle(withoutChain([first.url, second.url]), proof)).kind, 'uncertain');
        const refused = { kind: 'refused', reason: 'insufficient_funds', evidence: 'unsent' };
        assert.deepEqual(await settle(withoutChain([UNREACHABLE, second.url]), proof), refused);
      });

      it('keeps the hash that the first one named', async () => {
        const { proof } = await payer();
        const pending = { success: false, transaction: INVENTED_TRANSACTION, network: stage.terms.network };
        first.script({ settle: () => json(pending, 503) });
        second.script({ settle: () => json({}, 500) });
        const settlement = await settle(withoutChain([first.url, second.url]), proof);
        assert.deepEqual([settlement.kind, settlement.transaction], ['uncertain', INVENTED_TRANSACTION]);
      });
    });
  });
});
