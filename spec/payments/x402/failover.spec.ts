import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { PaymentRail, Proof } from '../../../src/payments/x402/wire/types.ts';
import { type Facilitator, startFacilitator } from '../../support/facilitator.ts';
import {
  type HostileFacilitator,
  INVENTED_TRANSACTION,
  relayTo,
  type ScriptedAnswer,
  startHostileFacilitator,
} from '../../support/hostile-facilitator.ts';
import { json, NO_VERDICT, noWriteAhead } from './hostile-answers.ts';
import { DEADLINES, NOBODY, refusal, remoteRail, spent } from './remote.ts';
import { PRICE_UNITS } from './signing.ts';
import { openStage, type Stage } from './stage.ts';

type Rail = PaymentRail & { close(): Promise<void> };

describe('several facilitators', () => {
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
  // A fresh line each: nobody has stepped back yet.
  beforeEach(() => {
    first.script({});
    second.script({});
  });
  after(async () => {
    for (const rail of open) await rail.close();
    await Promise.all([first, second, official].map((facilitator) => facilitator.stop()));
    await stage.close();
  });

  const railOver = (urls: readonly string[], deps: Partial<Parameters<typeof remoteRail>[1]> = {}): Rail => {
    const rail = remoteRail(urls, { network: stage.terms.network, chain: stage.chain, deadlines: DEADLINES, ...deps });
    open.push(rail);
    return rail;
  };
  const both = (deps?: Parameters<typeof railOver>[1]): Rail => railOver([first.url, second.url], deps);
  const settle = (rail: Rail, proof: Proof) => rail.settle(proof, stage.offer, noWriteAhead);
  const paidOnce = async (payer: string): Promise<void> =>
    assert.equal(await stage.local.balanceOf(payer), PRICE_UNITS);
  const payer = () => stage.actors.buyer(2n * PRICE_UNITS);

  const silent: readonly (readonly [string, ScriptedAnswer])[] = NO_VERDICT.filter(
    ([, { kind }]) => kind !== 'hang' && kind !== 'drip',
  );
  for (const [what, answer] of silent)
    it(`pass the question on when one gives no verdict: ${what}`, async () => {
      const proof = (await payer()).proof;
      first.script({ verify: () => answer, settle: () => answer });
      second.script({ settle: relayTo(official.url) });
      assert.deepEqual(await both().verify(proof, stage.offer), { kind: 'valid' });
      assert.deepEqual(first.calls.at(-1)?.body, second.calls.at(-1)?.body, 'the same payload');
      const settlement = await settle(both(), proof);
      assert.equal(settlement.kind === 'settled' && settlement.evidence, 'logs');
      await paidOnce(proof.payload.payload.authorization.from);
    });

  it('pass the question on when one hangs, within the one deadline', async () => {
    const { account, proof } = await payer();
    first.script({ verify: () => ({ kind: 'hang' }), settle: () => ({ kind: 'hang' }) });
    second.script({ settle: relayTo(official.url) });
    const begun = performance.now();
    assert.deepEqual(await both().verify(proof, stage.offer), { kind: 'valid' });
    assert.ok(performance.now() - begun < DEADLINES.verifyMs);
    assert.equal((await settle(both(), proof)).kind, 'settled');
    await paidOnce(account.address);
    assert.ok(performance.now() - begun < DEADLINES.verifyMs + DEADLINES.settleMs);
  });

  it('take a refusal as it is: nobody shops around', async () => {
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

  it('ask the chain between them: what the first one settled is not sent to the second', async () => {
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

  it('leave "nonce already used" of the second one to the chain, which shows what the first one did', async () => {
    const { account, proof } = await payer();
    let transaction = '';
    first.script({ settle: () => ({ kind: 'reset' }) });
    second.script({
      settle: async () => {
        transaction = await stage.actors.submit(proof);
        return spent;
      },
    });
    assert.deepEqual(await settle(both(), proof), { kind: 'settled', evidence: 'logs', transaction });
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

  describe('with no chain to ask', () => {
    const withoutChain = (urls: readonly string[]) => railOver(urls, { chain: undefined });
    it('count "nonce already used" as paid only when the first one may have sent it', async () => {
      const { proof } = await payer();
      first.script({ settle: () => ({ kind: 'reset' }) });
      second.script({ settle: () => spent });
      const paid = { kind: 'settled', evidence: 'nonce' };
      assert.deepEqual(await settle(withoutChain([first.url, second.url]), proof), paid);
      assert.equal((await settle(withoutChain([NOBODY, second.url]), proof)).kind, 'uncertain');
    });

    it('take a definite refusal as one only when the first one cannot have sent it', async () => {
      const { proof } = await payer();
      first.script({ settle: () => ({ kind: 'reset' }) });
      second.script({ settle: () => refusal });
      assert.equal((await settle(withoutChain([first.url, second.url]), proof)).kind, 'uncertain');
      const refused = { kind: 'refused', reason: 'insufficient_funds', evidence: 'unsent' };
      assert.deepEqual(await settle(withoutChain([NOBODY, second.url]), proof), refused);
    });

    it('keep the hash that the first one named', async () => {
      const { proof } = await payer();
      const pending = { success: false, transaction: INVENTED_TRANSACTION, network: stage.terms.network };
      first.script({ settle: () => json(pending, 503) });
      second.script({ settle: () => json({}, 500) });
      const settlement = await settle(withoutChain([first.url, second.url]), proof);
      assert.deepEqual([settlement.kind, settlement.transaction], ['uncertain', INVENTED_TRANSACTION]);
    });
  });
});
