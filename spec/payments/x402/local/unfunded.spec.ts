import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Hex, parseTransaction } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';
import { createChain } from '../../../../src/payments/x402/chain/chain.ts';
import { createLocalRail } from '../../../../src/payments/x402/local/local-rail.ts';
import type { PaymentRail, Proof } from '../../../../src/payments/x402/wire/types.ts';
import { throughFaultyNode } from '../faulty-node.ts';
import { openStage, type Stage, settleThrough } from '../stage.ts';

describe('a relayer that runs out of gas', () => {
  let stage: Stage;
  let rail: PaymentRail;
  let relayer: Hex;

  before(async () => {
    stage = await openStage();
    relayer = privateKeyToAddress(stage.local.relayerKey);
  });
  after(() => stage.close());
  beforeEach(async () => {
    await stage.local.fundGas(relayer);
    const { rpc, chain, terms, local } = stage;
    rail = await createLocalRail({ rpc, chain, terms, privateKey: local.relayerKey });
  });

  const drain = (): Promise<unknown> => stage.local.request('anvil_setBalance', [relayer, '0x0']);
  const settle = (proof: Proof, history?: { readonly sentBefore: boolean; readonly withdrawnBefore?: boolean }) =>
    settleThrough(rail, proof, stage.offer, history);
  const numberOf = (raw: string | undefined): number | undefined => parseTransaction(raw as Hex).nonce;
  /** The relayer had enough gas in the last check, and has none now. */
  const drainedUnseen = async (): Promise<void> => {
    assert.equal(await rail.check(), undefined);
    await drain();
  };

  it('is known before anything is begun: a good proof is unfunded, a bad one is refused as ever', async () => {
    const { proof } = await stage.actors.buyer();
    const { proof: unpaid } = await stage.actors.buyer(0n);
    await drain();
    assert.equal((await rail.verify(proof, stage.offer)).kind, 'unfunded');
    assert.equal((await rail.verify(unpaid, stage.offer)).kind, 'refused');
    assert.partialDeepStrictEqual(await rail.check(), { found: 'degraded' });
    assert.equal(rail.transfersLeft?.(), 0);
  });

  it('has enough again: the rail is ready, and the same proof settles', async () => {
    const { proof } = await stage.actors.buyer();
    await drain();
    assert.partialDeepStrictEqual(await rail.check(), { found: 'degraded' });
    await stage.local.fundGas(relayer);
    assert.equal(await rail.check(), undefined);
    assert.ok((rail.transfersLeft?.() ?? 0) > 10);
    assert.equal((await rail.verify(proof, stage.offer)).kind, 'valid');
    assert.equal((await settle(proof)).outcome.kind, 'settled');
  });

  it('found out by the broadcast: withdrawn with its hash, and its number goes to the next one', async () => {
    const [first, second] = [await stage.actors.buyer(), await stage.actors.buyer()];
    await drainedUnseen();
    const { outcome, written } = await settle(first.proof);
    assert.equal(outcome.kind, 'withdrawn');
    assert.equal(outcome.transaction, written[0]?.hash);
    assert.equal((await rail.verify(second.proof, stage.offer)).kind, 'unfunded', 'known from then on');
    await stage.local.fundGas(relayer);
    await rail.check();
    const next = await settle(second.proof);
    assert.equal(next.outcome.kind, 'settled');
    assert.equal(numberOf(next.written[0]?.raw), numberOf(written[0]?.raw));
    assert.equal(await stage.local.request('eth_getTransactionByHash', [written[0]?.hash]), null);
    assert.equal((await settle(first.proof, { sentBefore: false, withdrawnBefore: true })).outcome.kind, 'settled');
  });

  it('known when the settlement begins: withdrawn, and nothing is signed', async () => {
    const { proof } = await stage.actors.buyer();
    await drain();
    const { outcome, written } = await settle(proof);
    assert.deepEqual([outcome.kind, outcome.transaction, written.length], ['withdrawn', undefined, 0]);
  });

  it('what may have been sent before stays uncertain, and is not signed anew', async () => {
    const { proof } = await stage.actors.buyer();
    await drain();
    const { outcome, written } = await settle(proof, { sentBefore: true });
    assert.deepEqual([outcome.kind, written.length], ['uncertain', 0]);
    await stage.local.fundGas(relayer);
    await drainedUnseen();
    assert.equal((await settle(proof, { sentBefore: true })).outcome.kind, 'uncertain');
  });

  it('after a withdrawal only the chain can refuse', async () => {
    const { account, proof } = await stage.actors.buyer(0n);
    const history = { sentBefore: false, withdrawnBefore: true };
    assert.equal((await settle(proof, history)).outcome.kind, 'uncertain');
    await stage.actors.cancel(account, proof);
    const { outcome } = await settle(proof, history);
    assert.equal(outcome.kind === 'refused' && outcome.evidence, 'elsewhere');
  });

  it('a node that refuses it readably and took it all the same: withdrawn, and found paid by the next attempt', async () => {
    const { account, proof } = await stage.actors.buyer();
    const { terms, local, offer } = stage;
    const fault = (method: string) => (method === 'eth_sendRawTransaction' ? 'unfunded' : 'pass');
    const { outcome } = await throughFaultyNode(local.rpcUrl, fault, async (lying) => {
      const deps = { rpc: lying, chain: createChain(lying), terms, privateKey: local.relayerKey };
      return settleThrough(await createLocalRail(deps), proof, offer);
    });
    assert.equal(outcome.kind, 'withdrawn');
    const { transaction } = outcome;
    assert.deepEqual(await rail.reconcile(proof, offer, { sentBefore: false, transaction }), {
      kind: 'settled',
      evidence: 'logs',
      transaction,
    });
    assert.equal(await stage.local.balanceOf(account.address), 0n);
  });

  it('a number that another process used does not end the settlement: the next one is tried, and one payment is made', async () => {
    const { account, proof } = await stage.actors.buyer();
    const { rpc, terms, local, chain } = stage;
    const other = await createLocalRail({ rpc, chain, terms, privateKey: local.relayerKey });
    const strangers = await stage.actors.buyer();
    let overtaken = false;
    const written: string[] = [];
    const outcome = await rail.settle(proof, stage.offer, async ({ raw }) => {
      written.push(raw ?? '');
      if (overtaken) return;
      overtaken = true;
      assert.equal((await settleThrough(other, strangers.proof, stage.offer)).outcome.kind, 'settled');
    });
    assert.equal(outcome.kind, 'settled');
    assert.equal(written.length, 2);
    assert.equal(numberOf(written[1]), (numberOf(written[0]) ?? 0) + 1);
    assert.equal(await local.balanceOf(account.address), 0n);
  });

  it('a number that its own bytes used is no exclusion: a copy of the broadcast was faster', async () => {
    const { account, proof } = await stage.actors.buyer();
    const written: string[] = [];
    const outcome = await rail.settle(proof, stage.offer, async ({ raw }) => {
      written.push(raw ?? '');
      await stage.local.request('eth_sendRawTransaction', [raw]);
    });
    assert.equal(outcome.kind, 'settled');
    assert.equal(written.length, 1);
    assert.equal(await stage.local.balanceOf(account.address), 0n);
  });
});
