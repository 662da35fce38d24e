import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createChain } from '../../../../src/payments/x402/chain/chain.ts';
import { createRpc, type Rpc } from '../../../../src/payments/x402/chain/rpc.ts';
import type { PaymentRail, Proof } from '../../../../src/payments/x402/wire/types.ts';
import { type Chain as LocalChain, startChain } from '../../../support/chain.ts';
import { type Facilitator, startFacilitator } from '../../../support/facilitator.ts';
import {
  type HostileFacilitator,
  INVENTED_TRANSACTION,
  relayTo,
  type Script,
  startHostileFacilitator,
} from '../../../support/hostile-facilitator.ts';
import { type ChainActors, chainActors } from '../chain/chain-actors.ts';
import { json, noWriteAhead } from '../hostile-answers.ts';
import { remoteRail } from '../remote.ts';
import { offerFor, PRICE_UNITS, type Terms, termsFor } from '../signing.ts';

const SPENT = 'invalid_exact_evm_nonce_already_used';
const HASH = /^0x[0-9a-f]{64}$/;

describe('a facilitator, checked against the chain', () => {
  let local: LocalChain;
  let rpc: Rpc;
  let official: Facilitator;
  let between: HostileFacilitator;
  let rail: PaymentRail & { close(): Promise<void> };
  let terms: Terms;
  let offer: ReturnType<typeof offerFor>;
  let actors: ChainActors;

  before(async () => {
    local = await startChain();
    terms = termsFor(local.token, local.chainId);
    offer = offerFor(terms);
    actors = chainActors(local, terms);
    official = await startFacilitator(local);
    between = await startHostileFacilitator(terms.network);
    rpc = createRpc(local.rpcUrl);
    const deadlines = { verifyMs: 5_000, settleMs: 2_000, confirmMs: 200 };
    rail = remoteRail([between.url], { network: terms.network, chain: createChain(rpc), deadlines });
  });
  after(async () => {
    await rail.close();
    await rpc.close();
    await between.stop();
    await official.stop();
    await local.stop();
  });

  const settle = (proof: Proof) => rail.settle(proof, offer, noWriteAhead);

  it('that is the official one takes our proofs and settles them', async () => {
    const relay = relayTo(official.url);
    between.script({ verify: relay, settle: relay, supported: relay });
    const { account, proof } = await actors.buyer();
    assert.equal(await rail.check(), undefined);
    assert.deepEqual(await rail.verify(proof, offer), { kind: 'valid' });
    const settlement = await settle(proof);
    assert.equal(settlement.kind, 'settled');
    assert.match(settlement.transaction ?? '', HASH);
    assert.equal(await local.balanceOf(account.address), 0n);
    assert.deepEqual(await rail.verify(proof, offer), { kind: 'refused', reason: SPENT, nonceSpent: true });
    assert.deepEqual(await settle(proof), settlement);
  });

  it('that is the official one and refuses says so in our words', async () => {
    between.script({ verify: relayTo(official.url) });
    const { proof } = await actors.buyer();
    const { proof: other } = await actors.buyer();
    const { authorization } = proof.payload.payload;
    const { signature } = other.payload.payload;
    const forged = { ...proof, payload: { ...proof.payload, payload: { signature, authorization } } };
    const refusal = { kind: 'refused', reason: 'invalid_exact_evm_payload_signature', nonceSpent: false };
    assert.deepEqual(await rail.verify(forged, offer), refusal);
  });

  /** It settles, and something else is heard of it. */
  const garbled: readonly (readonly [what: string, answer: Awaited<ReturnType<Script>>])[] = [
    ['a reset', { kind: 'reset' }],
    ['a 500', json({ error: 'internal' }, 500)],
    ['silence', { kind: 'hang' }],
    ['another network', json({ success: true, network: 'eip155:1', transaction: INVENTED_TRANSACTION })],
    ['pending', json({ success: false, errorReason: 'settlement_pending', transaction: '' })],
    ['a definite refusal', json({ success: false, errorReason: 'insufficient_funds', transaction: '' })],
    ['an invented transaction', json({ success: true, network: 'eip155:31337', transaction: INVENTED_TRANSACTION })],
  ];
  for (const [what, answer] of garbled)
    it(`that settled and answers ${what} has settled`, async () => {
      const relay = relayTo(official.url);
      between.script({
        settle: async (call) => {
          await relay(call);
          return answer;
        },
      });
      const { account, proof } = await actors.buyer();
      const settlement = await settle(proof);
      assert.equal(settlement.kind, 'settled');
      assert.notEqual(settlement.transaction, INVENTED_TRANSACTION);
      assert.equal(await local.balanceOf(account.address), 0n);
    });

  it('that approves everything and moves nothing is not believed', async () => {
    between.script({});
    const { account, proof } = await actors.buyer();
    const settlement = await settle(proof);
    assert.equal(settlement.kind, 'uncertain');
    assert.equal(settlement.transaction, INVENTED_TRANSACTION);
    assert.equal(await local.balanceOf(account.address), PRICE_UNITS);
    assert.equal((await rail.reconcile(proof, offer, INVENTED_TRANSACTION)).kind, 'open');
  });

  it("that shows the transaction of somebody else's payment is not believed", async () => {
    const { proof: other } = await actors.buyer();
    const transaction = await actors.submit(other);
    between.script({ settle: () => json({ success: true, network: terms.network, transaction }) });
    const { proof } = await actors.buyer();
    assert.equal((await settle(proof)).kind, 'uncertain');
  });

  it('that claims success for a cancelled authorization is refuted', async () => {
    between.script({});
    const { account, proof } = await actors.buyer();
    await actors.cancel(account, proof);
    const settlement = await settle(proof);
    assert.equal(settlement.kind === 'refused' && settlement.reason, SPENT);
  });

  it('that refuses definitely leaves an open authorization uncertain: it could still be charged', async () => {
    between.script({ settle: () => json({ success: false, errorReason: 'insufficient_funds', transaction: '' }) });
    const { proof } = await actors.buyer();
    assert.equal((await settle(proof)).kind, 'uncertain');
  });

  it('whose simulation fails on a nonce that paid us: the payment is noticed', async () => {
    const reason = 'invalid_exact_evm_transaction_simulation_failed';
    between.script({ verify: () => json({ isValid: false, invalidReason: reason }) });
    const { proof } = await actors.buyer();
    assert.deepEqual(await rail.verify(proof, offer), { kind: 'refused', reason, nonceSpent: false });
    await actors.submit(proof);
    assert.deepEqual(await rail.verify(proof, offer), { kind: 'refused', reason: SPENT, nonceSpent: true });
  });
});
