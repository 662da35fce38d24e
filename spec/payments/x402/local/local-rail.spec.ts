import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { encodeFunctionData, type Hex, keccak256, parseTransaction } from 'viem';
import { type PrivateKeyAccount, privateKeyToAddress } from 'viem/accounts';
import { createChain, evidenceQuery } from '../../../../src/payments/x402/chain/chain.ts';
import { clientOver, type Rpc } from '../../../../src/payments/x402/chain/node.ts';
import { payersWithCode } from '../../../../src/payments/x402/local/lane.ts';
import { createLocalRail, FAILED_PAYER_PAUSE_MS } from '../../../../src/payments/x402/local/local-rail.ts';
import type { PaymentRail, Proof } from '../../../../src/payments/x402/wire/types.ts';
import type { Chain as LocalChain } from '../../../../tools/local-world/chain.ts';
import { TOKEN_ABI } from '../../../../tools/local-world/contracts.ts';
import { freshAccount, freshAddress, genuineProof, type offerFor, PRICE_UNITS, type Terms } from '../signing.ts';
import { type ChainActors, openStage, type Stage, settleThrough, throughFaultyNode } from '../stage.ts';

const SPENT = 'invalid_exact_evm_nonce_already_used';

describe('the local rail on a real chain', () => {
  let stage: Stage;
  let local: LocalChain;
  let rpc: Rpc;
  let rail: PaymentRail;
  let terms: Terms;
  let offer: ReturnType<typeof offerFor>;
  let actors: ChainActors;

  before(async () => {
    stage = await openStage();
    ({ local, rpc, terms, offer, actors, rail } = stage);
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
      assert.equal(await rail.markOf?.(outcome.transaction ?? '', proof, offer), mark);
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

  it('knows which payers have code', async () => {
    const plain = freshAccount().address.toLowerCase();
    const asset = terms.asset.toLowerCase();
    const client = clientOver(rpc.call);
    assert.deepEqual(await payersWithCode(client, [plain, asset, plain]), new Set([asset]));
    await local.request('anvil_setCode', [plain, `0xef0100${asset.slice(2)}`]);
    assert.deepEqual(await payersWithCode(client, [asset, plain]), new Set([asset, plain]));
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

  it('recognises a payment that a stranger slips in between simulation and broadcast', async () => {
    const { proof } = await actors.buyer();
    let transaction: string | undefined;
    const outcome = await rail.settle(proof, offer, async () => {
      transaction = await actors.submit(proof);
    });
    assert.deepEqual(outcome, { kind: 'settled', evidence: 'logs', transaction, by: 'others' });
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

/** Far below the minute that a transaction may take. */
const SOON_MS = 5_000;

describe('a transfer that fails in its block', () => {
  let stage: Stage;
  let rail: PaymentRail;
  let clock = 0;
  before(async () => {
    stage = await openStage();
    const { rpc, chain, terms, local } = stage;
    rail = await createLocalRail({ rpc, chain, terms, privateKey: local.relayerKey, now: () => clock });
  });
  after(() => stage.close());

  /** The payer empties the account between simulation and block. */
  const failing = async () => {
    const { account, proof } = await stage.actors.buyer();
    const begun = performance.now();
    let transaction: Hex | undefined;
    const outcome = await rail.settle(proof, stage.offer, async ({ hash }) => {
      transaction = hash as Hex;
      await empty(account);
    });
    return { account, proof, outcome, transaction, tookMs: performance.now() - begun };
  };
  const empty = async ({ address }: PrivateKeyAccount): Promise<void> => {
    const { local } = stage;
    await local.fundGas(address);
    const args = [freshAddress() as Hex, PRICE_UNITS] as const;
    const call = encodeFunctionData({ abi: TOKEN_ABI, functionName: 'transfer', args });
    await local.send(address, local.token.address, call);
  };

  it('ends the wait at once and stays uncertain: the authorization can still pay', async () => {
    const { account, proof, outcome, transaction, tookMs } = await failing();
    assert.equal(outcome.kind === 'uncertain' && outcome.failed, true);
    assert.equal(outcome.transaction, transaction);
    assert.ok(tookMs < SOON_MS, `${Math.round(tookMs)} ms`);
    await stage.local.mint(account.address, PRICE_UNITS);
    const stranger = await stage.actors.submit(proof);
    const paid = { kind: 'settled', evidence: 'logs', transaction: stranger, by: 'others' };
    assert.deepEqual(await rail.reconcile(proof, stage.offer, { sentBefore: true, transaction }), paid);
  });

  it('is no failure while the newest block of the node is older: another transaction of its block may have paid', async () => {
    const { proof, transaction } = await failing();
    const query = evidenceQuery(proof, stage.offer, transaction);
    const mined = (await stage.rpc.call('eth_getTransactionReceipt', [transaction])) as { blockNumber: string };
    for (const [blocksBehind, failed] of [
      [1n, undefined],
      [0n, true],
    ] as const) {
      const head = `0x${(BigInt(mined.blockNumber) - blocksBehind).toString(16)}`;
      const behind: Pick<Rpc, 'call'> = {
        call: (method, params) =>
          stage.rpc.call(method, method === 'eth_getBlockByNumber' && params[0] === 'latest' ? [head, false] : params),
      };
      const evidence = await createChain({ ...stage.rpc, ...behind }).readEvidence(query);
      assert.equal(evidence.kind === 'open' && evidence.failed, failed);
    }
  });

  it('makes its payer wait before the next transfer; others go on', async () => {
    const { account, proof } = await failing();
    await stage.local.mint(account.address, 2n * PRICE_UNITS);
    const next = await genuineProof(account, stage.terms);
    const failedAt = clock;
    clock = failedAt + FAILED_PAYER_PAUSE_MS - 1;
    assert.equal((await rail.verify(next, stage.offer)).kind, 'unavailable');
    const { outcome, written } = await settleThrough(rail, proof, stage.offer, { sentBefore: true });
    assert.deepEqual([outcome.kind, written.length], ['uncertain', 0]);
    const { proof: other } = await stage.actors.buyer();
    assert.equal((await settleThrough(rail, other, stage.offer)).outcome.kind, 'settled');
    clock = failedAt + FAILED_PAYER_PAUSE_MS;
    assert.equal((await settleThrough(rail, next, stage.offer)).outcome.kind, 'settled');
  });

  const ends: readonly (readonly [
    what: string,
    end: (account: PrivateKeyAccount, proof: Proof) => Promise<unknown>,
    next: 'unavailable' | 'valid',
  ])[] = [
    [
      'is cancelled by its payer: the payer waits',
      (account, proof) => stage.actors.cancel(account, proof),
      'unavailable',
    ],
    ['is submitted by a stranger first: its payer has paid', (_, proof) => stage.actors.submit(proof), 'valid'],
  ];
  for (const [what, end, next] of ends)
    it(`because it ${what}`, async () => {
      const { account, proof } = await stage.actors.buyer(2n * PRICE_UNITS);
      await rail.settle(proof, stage.offer, async () => void (await end(account, proof)));
      assert.equal((await rail.verify(await genuineProof(account, stage.terms), stage.offer)).kind, next);
    });
});

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
