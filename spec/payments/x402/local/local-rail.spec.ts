import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { type Hex, keccak256 } from 'viem';
import { type Chain, createChain } from '../../../../src/payments/x402/chain/chain.ts';
import { clientOver } from '../../../../src/payments/x402/chain/client.ts';
import type { Rpc } from '../../../../src/payments/x402/chain/rpc.ts';
import {
  createFailedPayers,
  createLocalRail,
  FAILED_PAYER_PAUSE_MS,
  FAILED_PAYERS,
  payersWithCode,
} from '../../../../src/payments/x402/local/local-rail.ts';
import type { PaymentRail, Proof } from '../../../../src/payments/x402/wire/types.ts';
import type { Chain as LocalChain } from '../../../../tools/local-world/chain.ts';
import type { ChainActors } from '../chain/chain-actors.ts';
import { throughFaultyNode } from '../faulty-node.ts';
import { freshAccount, genuineProof, type offerFor, PRICE_UNITS, type Terms } from '../signing.ts';
import { openStage, type Stage, settleThrough } from '../stage.ts';

describe('payers whose transfer has failed', () => {
  it('pause from their last failure on, however their address is spelled', () => {
    let now = 0;
    const failed = createFailedPayers(() => now);
    failed.add('0xAb');
    now = 10;
    failed.add('0xaB');
    for (const [at, pauses] of [
      [FAILED_PAYER_PAUSE_MS + 9, true],
      [FAILED_PAYER_PAUSE_MS + 10, false],
    ] as const) {
      now = at;
      assert.equal(failed.has('0xAB'), pauses);
    }
    assert.equal(failed.has('0xcd'), false);
  });

  it('are remembered up to a bound, the latest of them', () => {
    const failed = createFailedPayers(() => 0);
    failed.add('again');
    for (let n = 1; n < FAILED_PAYERS; n += 1) failed.add(`payer ${n}`);
    failed.add('again');
    failed.add('one more');
    assert.deepEqual([failed.has('again'), failed.has('payer 1'), failed.has('payer 2')], [true, false, true]);
  });
});

const HASH = /^0x[0-9a-f]{64}$/;
const SPENT = 'invalid_exact_evm_nonce_already_used';

describe('the local rail on a real chain', () => {
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

  it('moves exactly the price, and writes the transaction ahead of its broadcast', async () => {
    const { account, proof } = await actors.buyer();
    const balanceBefore = await local.balanceOf(offer.payTo);
    assert.deepEqual(await rail.verify(proof, offer), { kind: 'valid' });
    const { outcome, written } = await settle(proof);
    assert.equal(outcome.kind, 'settled');
    assert.equal(written.length, 1);
    assert.equal(outcome.transaction, written[0]?.hash);
    assert.equal(written[0]?.hash, keccak256(written[0]?.raw as Hex));
    assert.equal(await local.balanceOf(offer.payTo), balanceBefore + PRICE_UNITS);
    assert.equal(await local.balanceOf(account.address), 0n);
  });

  it('settles a payer that pays many times at once, each once', async () => {
    const account = freshAccount();
    const payments = 12;
    await local.mint(account.address, PRICE_UNITS * BigInt(payments));
    const proofs = await Promise.all(Array.from({ length: payments }, () => genuineProof(account, terms)));
    const settled = await Promise.all(proofs.map((proof) => settle(proof)));
    assert.deepEqual(new Set(settled.map(({ outcome }) => outcome.kind)), new Set(['settled']));
    for (const { outcome, written } of settled) assert.equal(outcome.transaction, written[0]?.hash);
    assert.equal(await local.balanceOf(account.address), 0n);
  });

  it('makes many payments in few transactions, each with its own mark', async () => {
    const buyers = await Promise.all(Array.from({ length: 6 }, () => actors.buyer()));
    const settled = await Promise.all(
      buyers.map(async ({ proof }, at) => {
        const mark = `${at}`.repeat(64);
        const outcome = await rail.settle(proof, offer, async () => undefined, { sentBefore: false, mark });
        return { proof, mark, outcome };
      }),
    );
    for (const { proof, mark, outcome } of settled) {
      assert.equal(outcome.kind, 'settled');
      assert.equal(await rail.markOf?.(outcome.transaction ?? '', proof), mark);
      assert.deepEqual(
        await rail.reconcile(proof, offer, { sentBefore: true, mark }),
        outcome,
        'the mark shows whose it is',
      );
      assert.deepEqual(await rail.reconcile(proof, offer), { ...outcome, by: 'unknown' });
      const other = { sentBefore: true, mark: 'f'.repeat(64) };
      assert.deepEqual(await rail.reconcile(proof, offer, other), { ...outcome, by: 'others' });
    }
    assert.ok(new Set(settled.map(({ outcome }) => outcome.transaction)).size < buyers.length);
    for (const { account } of buyers) assert.equal(await local.balanceOf(account.address), 0n);
  });

  it('simulates a payment once: its settlement follows its verification', async () => {
    let simulations = 0;
    const counting: Rpc = {
      ...rpc,
      call(method, params, ...more) {
        const { from } = (params[0] ?? {}) as { readonly from?: string };
        if (method === 'eth_call' && from !== undefined) simulations += 1;
        return rpc.call(method, params, ...more);
      },
    };
    const counted = await createLocalRail({ rpc: counting, chain, terms, privateKey: local.relayerKey });
    const { proof } = await actors.buyer();
    assert.equal((await counted.verify(proof, offer)).kind, 'valid');
    assert.equal((await settle(proof, counted)).outcome.kind, 'settled');
    assert.equal(simulations, 1);
  });

  it('knows which payers have code', async () => {
    const plain = freshAccount().address.toLowerCase();
    const asset = terms.asset.toLowerCase();
    const client = clientOver(rpc.call);
    assert.deepEqual(await payersWithCode(client, [plain, asset, plain]), new Set([asset]));
    await local.request('anvil_setCode', [plain, `0xef0100${asset.slice(2)}`]);
    assert.deepEqual(await payersWithCode(client, [asset, plain]), new Set([asset, plain]));
  });

  it('sends nothing when the write-ahead fails', async () => {
    const { account, proof } = await actors.buyer();
    const outcome = await rail.settle(proof, offer, async () => {
      throw new Error('fenced');
    });
    assert.equal(outcome.kind, 'withdrawn');
    assert.equal(await local.balanceOf(account.address), PRICE_UNITS);
    assert.equal((await rail.reconcile(proof, offer)).kind, 'open');
    assert.equal((await settle(proof)).outcome.kind, 'settled');
  });

  it('finds a replay to be paid by the first transaction, and sends no second one', async () => {
    const { proof } = await actors.buyer(2n * PRICE_UNITS);
    const first = await settle(proof);
    assert.deepEqual(await rail.verify(proof, offer), { kind: 'refused', reason: SPENT, nonceSpent: true });
    const again = await settle(proof);
    // Of its account, and without a mark: the store that sent it is the one that has its hash.
    assert.deepEqual(again.outcome, { ...first.outcome, by: 'unknown' });
    assert.equal(again.written.length, 0);
    assert.deepEqual(
      await rail.reconcile(proof, offer, { sentBefore: true, transaction: first.outcome.transaction }),
      first.outcome,
    );
  });

  it('recognises a payment that a stranger submitted first', async () => {
    const { proof } = await actors.buyer();
    const transaction = await actors.submit(proof);
    const { outcome, written } = await settle(proof);
    assert.deepEqual(outcome, { kind: 'settled', evidence: 'logs', transaction, by: 'others' });
    assert.equal(written.length, 0);
  });

  it('recognises a payment that a stranger slips in between simulation and broadcast', async () => {
    const { proof } = await actors.buyer();
    let transaction: string | undefined;
    const outcome = await rail.settle(proof, offer, async () => {
      transaction = await actors.submit(proof);
    });
    assert.deepEqual(outcome, { kind: 'settled', evidence: 'logs', transaction, by: 'others' });
  });

  it('refuses a cancelled authorization: the nonce is spent without a payment', async () => {
    const { account, proof } = await actors.buyer();
    await actors.cancel(account, proof);
    const { outcome } = await settle(proof);
    assert.equal(outcome.kind === 'refused' && outcome.evidence, 'elsewhere');
    assert.equal((await rail.reconcile(proof, offer)).kind, 'refused');
  });

  it('refuses an authorization that the payer spent on itself', async () => {
    const { account, proof } = await actors.buyer();
    await actors.spendOnSelf(account, proof);
    const { outcome } = await settle(proof);
    assert.equal(outcome.kind === 'refused' && outcome.evidence, 'elsewhere');
    assert.match(outcome.transaction ?? '', HASH);
    assert.equal(await local.balanceOf(account.address), PRICE_UNITS);
  });

  it('refuses one cancelled between simulation and broadcast, although its own transaction was mined', async () => {
    const { account, proof } = await actors.buyer();
    const outcome = await rail.settle(proof, offer, () => actors.cancel(account, proof));
    assert.equal(outcome.kind === 'refused' && outcome.evidence, 'elsewhere');
  });

  it('refuses a payer without funds before anything is sent, but not after an earlier attempt', async () => {
    const { proof } = await actors.buyer(0n);
    const refusal = { kind: 'refused', reason: 'insufficient_funds' } as const;
    assert.deepEqual(await rail.verify(proof, offer), { ...refusal, nonceSpent: false });
    const { outcome, written } = await settle(proof);
    assert.deepEqual(outcome, { ...refusal, evidence: 'unsent' });
    assert.equal(written.length, 0);
    assert.equal((await settle(proof, rail, { sentBefore: true })).outcome.kind, 'uncertain');
  });

  it('refuses an expired authorization before anything is sent', async () => {
    const proof = await genuineProof(freshAccount(), terms, { validBefore: '1' });
    const { outcome, written } = await settle(proof);
    assert.deepEqual(outcome, {
      kind: 'refused',
      reason: 'invalid_exact_evm_payload_authorization_valid_before',
      evidence: 'unsent',
    });
    assert.equal(written.length, 0);
  });

  it('never sends what does not pay the offer', async () => {
    const { account, proof } = await actors.buyer();
    const cheaper = { ...offer, amount: '1' };
    assert.equal((await rail.verify(proof, cheaper)).kind, 'refused');
    const outcome = await rail.settle(proof, cheaper, async () => assert.fail('nothing may be signed'));
    assert.equal(outcome.kind, 'uncertain');
    assert.equal(await local.balanceOf(account.address), PRICE_UNITS);
  });

  it('is ready while its relayer can pay gas', async () => {
    assert.equal(await rail.check(), undefined);
    const privateKey = `0x${randomBytes(32).toString('hex')}`;
    const poor = await createLocalRail({ rpc, chain, terms, privateKey });
    assert.deepEqual(await poor.check(), { found: 'degraded', cause: 'the relayer is out of gas' });
  });

  it('stays uncertain, with the hash, while its transaction is not mined; the same proof settles later', async () => {
    const { proof } = await actors.buyer();
    const hasty = await createLocalRail({ rpc, chain, terms, privateKey: local.relayerKey, settleDeadlineMs: 300 });
    await local.request('evm_setAutomine', [false]);
    const { outcome, written } = await settle(proof, hasty);
    assert.equal(outcome.kind, 'uncertain');
    assert.equal(outcome.transaction, written[0]?.hash);
    assert.equal(
      (await rail.reconcile(proof, offer, { sentBefore: true, transaction: outcome.transaction })).kind,
      'open',
    );
    await local.request('evm_setAutomine', [true]);
    await local.request('evm_mine', []);
    assert.deepEqual(await rail.reconcile(proof, offer, { sentBefore: true, transaction: outcome.transaction }), {
      kind: 'settled',
      evidence: 'logs',
      transaction: outcome.transaction,
    });
  });

  it('keeps the hash when the answer to the broadcast is lost, and finds the payment', async () => {
    const { account, proof } = await actors.buyer();
    const fault = (method: string) => (method === 'eth_sendRawTransaction' ? 'lose' : 'pass');
    const { outcome, written } = await throughFaultyNode(local.rpcUrl, fault, async (lossy) =>
      settle(proof, await createLocalRail({ rpc: lossy, chain, terms, privateKey: local.relayerKey })),
    );
    assert.deepEqual(outcome, { kind: 'settled', evidence: 'logs', transaction: written[0]?.hash });
    assert.equal(await local.balanceOf(account.address), 0n);
  });

  it('gives no reading when the node fails, and no verdict', async () => {
    const { proof } = await actors.buyer();
    await throughFaultyNode(
      local.rpcUrl,
      () => 'fail',
      async (dead) => {
        const deps = { rpc: dead, chain: createChain(dead), terms, privateKey: local.relayerKey };
        const blind = await createLocalRail(deps);
        assert.equal((await blind.verify(proof, offer)).kind, 'unavailable');
        const { outcome, written } = await settle(proof, blind);
        assert.deepEqual([outcome.kind, written.length], ['withdrawn', 0]);
        assert.equal((await blind.reconcile(proof, offer)).kind, 'unknown');
        assert.ok(await blind.check());
      },
    );
  });
});
