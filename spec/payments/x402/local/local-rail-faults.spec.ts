import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Chain, createChain } from '../../../../src/payments/x402/chain/chain.ts';
import { createRpc, type Rpc } from '../../../../src/payments/x402/chain/rpc.ts';
import { createLocalRail } from '../../../../src/payments/x402/local/local-rail.ts';
import type { PaymentRail, Proof } from '../../../../src/payments/x402/wire/types.ts';
import type { Chain as LocalChain } from '../../../support/chain.ts';
import type { ChainActors } from '../chain/chain-actors.ts';
import { startFaultyNode } from '../faulty-node.ts';
import type { offerFor, Terms } from '../signing.ts';
import { openStage, type Stage, settleThrough } from '../stage.ts';

describe('the local rail when the chain or its node is slow, deaf or down', () => {
  let stage: Stage;
  let local: LocalChain;
  let rpc: Rpc;
  let chain: Chain;
  let rail: PaymentRail;
  let terms: Terms;
  let offer: ReturnType<typeof offerFor>;
  let actors: ChainActors;

  before(async () => {
    stage = await openStage();
    ({ local, rpc, chain, terms, offer, actors, rail } = stage);
  });
  after(() => stage.close());

  const settle = (proof: Proof, through = rail, history?: { sentBefore: boolean }) =>
    settleThrough(through, proof, offer, history);

  it('stays uncertain, with the hash, while its transaction is not mined; the same proof settles later', async () => {
    const { proof } = await actors.buyer();
    const hasty = await createLocalRail({ rpc, chain, terms, privateKey: local.relayerKey, settleDeadlineMs: 300 });
    await local.request('evm_setAutomine', [false]);
    const { outcome, written } = await settle(proof, hasty);
    assert.equal(outcome.kind, 'uncertain');
    assert.equal(outcome.transaction, written[0]?.hash);
    assert.equal((await rail.reconcile(proof, offer, outcome.transaction)).kind, 'open');
    await local.request('evm_setAutomine', [true]);
    await local.request('evm_mine', []);
    assert.deepEqual(await rail.reconcile(proof, offer, outcome.transaction), {
      kind: 'settled',
      evidence: 'logs',
      transaction: outcome.transaction,
    });
  });

  it('keeps the hash when the answer to the broadcast is lost, and finds the payment', async () => {
    const { account, proof } = await actors.buyer();
    const lossy = await startFaultyNode(local.rpcUrl, (method) =>
      method === 'eth_sendRawTransaction' ? 'lose' : 'pass',
    );
    const throughLoss = createRpc(lossy.url);
    const losing = await createLocalRail({ rpc: throughLoss, chain, terms, privateKey: local.relayerKey });
    const { outcome, written } = await settle(proof, losing);
    assert.deepEqual(outcome, { kind: 'settled', evidence: 'logs', transaction: written[0]?.hash });
    assert.equal(await local.balanceOf(account.address), 0n);
    await throughLoss.close();
    await lossy.stop();
  });

  it('gives no reading when the node fails, and no verdict', async () => {
    const { proof } = await actors.buyer();
    const failing = await startFaultyNode(local.rpcUrl, () => 'fail');
    const throughFailure = createRpc(failing.url);
    const blind = await createLocalRail({
      rpc: throughFailure,
      chain: createChain(throughFailure),
      terms,
      privateKey: local.relayerKey,
    });
    assert.equal((await blind.verify(proof, offer)).kind, 'unavailable');
    const { outcome, written } = await settle(proof, blind);
    assert.equal(outcome.kind, 'uncertain');
    assert.equal(written.length, 0);
    assert.equal((await blind.reconcile(proof, offer, undefined)).kind, 'unknown');
    assert.ok(await blind.check());
    await throughFailure.close();
    await failing.stop();
  });
});
