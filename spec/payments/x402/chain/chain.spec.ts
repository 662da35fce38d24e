import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { encodeFunctionData, parseAbi } from 'viem';
import { checkAsset } from '../../../../src/payments/x402/chain/asset-check.ts';
import { type Chain, createChain, type EvidenceQuery } from '../../../../src/payments/x402/chain/chain.ts';
import type { Rpc } from '../../../../src/payments/x402/chain/rpc.ts';
import { createLocalRail } from '../../../../src/payments/x402/local/local-rail.ts';
import type { Proof } from '../../../../src/payments/x402/wire/types.ts';
import type { Chain as LocalChain } from '../../../../tools/local-world/chain.ts';
import { CONTRACTS, MULTICALL3_ADDRESS } from '../../../../tools/local-world/contracts.ts';
import { type Fault, throughFaultyNode } from '../faulty-node.ts';
import {
  authorize,
  freshAccount,
  freshAddress,
  genuineProof,
  nowSeconds,
  type offerFor,
  PRICE_UNITS,
  sign,
  type Terms,
  termsFor,
} from '../signing.ts';
import { openStage, type Stage } from '../stage.ts';
import type { ChainActors } from './chain-actors.ts';

const SPENT = 'invalid_exact_evm_nonce_already_used';
const EXPIRED = 'invalid_exact_evm_payload_authorization_valid_before';

describe('what the chain shows', () => {
  let stage: Stage;
  let local: LocalChain;
  let rpc: Rpc;
  let chain: Chain;
  let terms: Terms;
  let offer: ReturnType<typeof offerFor>;
  let actors: ChainActors;

  before(async () => {
    stage = await openStage();
    ({ local, rpc, chain, terms, offer, actors } = stage);
  });
  after(() => stage.close());

  function about({ payload }: Proof, knownTransaction?: string): EvidenceQuery {
    const { from, nonce, validBefore } = payload.payload.authorization;
    const { asset, payTo, amount: value } = offer;
    const since = nowSeconds() - 600;
    return { asset, from, nonce, payTo, value, validBefore: Number(validBefore), since, knownTransaction };
  }

  /** What a chain behind a node with one fault shows. */
  const readThrough = (faultyMethod: string, fault: Fault, query: EvidenceQuery) =>
    throughFaultyNode(
      local.rpcUrl,
      (method) => (method === faultyMethod ? fault : 'pass'),
      (faulty) => createChain(faulty).readEvidence(query),
    );

  it('no missing logs of a batch in which only others paid, when the search is late', async () => {
    const paid = (await actors.buyer()).proof;
    const transaction = await actors.submit(paid);
    const { account, proof } = await actors.buyer();
    await actors.cancel(account, proof);
    const late = await readThrough('eth_getLogs', 'empty', about(proof, transaction));
    assert.deepEqual(late, { kind: 'unknown', cause: 'the nonce is spent, its log was not found' });
  });

  it('paid, by any sender, with and without a hint, even a wrong one', async () => {
    const { proof } = await actors.buyer();
    const transaction = await actors.submit(proof);
    const { proof: other } = await actors.buyer();
    const wrong = await actors.submit(other);
    for (const hint of [undefined, transaction, wrong, `0x${'0'.repeat(64)}`])
      assert.deepEqual(await chain.readEvidence(about(proof, hint)), { kind: 'paid', transaction });
  });

  it('not paid to another payee or at another price', async () => {
    const { proof } = await actors.buyer();
    const transaction = await actors.submit(proof);
    for (const change of [{ payTo: freshAddress() }, { value: '20000' }])
      for (const hint of [undefined, transaction]) {
        const evidence = await chain.readEvidence({ ...about(proof, hint), ...change });
        assert.deepEqual(evidence, { kind: 'worthless', reason: SPENT, transaction });
      }
  });

  it('worthless once cancelled or spent on the payer itself', async () => {
    for (const spoil of [actors.cancel, actors.spendOnSelf]) {
      const { account, proof } = await actors.buyer();
      await spoil(account, proof);
      const evidence = await chain.readEvidence(about(proof));
      assert.equal(evidence.kind === 'worthless' && evidence.reason, SPENT);
    }
  });

  it('open until a block has reached its end, worthless from then on', async () => {
    const validBefore = nowSeconds() + 100;
    const proof = await genuineProof(freshAccount(), terms, { validBefore: String(validBefore) });
    const snapshot = await local.request('evm_snapshot', []);
    const evidenceAt = async (timestamp: number) => {
      await local.request('evm_setNextBlockTimestamp', [timestamp]);
      await local.request('evm_mine', []);
      return chain.readEvidence(about(proof));
    };
    assert.deepEqual(await evidenceAt(validBefore - 1), { kind: 'open', headTime: validBefore - 1 });
    assert.deepEqual(await evidenceAt(validBefore), { kind: 'worthless', reason: EXPIRED });
    await local.request('evm_revert', [snapshot]);
  });

  describe('with three confirmations', () => {
    const mine = (): Promise<unknown> => local.request('evm_mine', []);
    const kinds = async (question: EvidenceQuery): Promise<readonly string[]> => {
      const deep = createChain(rpc, 3);
      const seen: string[] = [];
      for (let above = 0; above < 3; above += 1) {
        if (above > 0) await mine();
        seen.push((await deep.readEvidence(question)).kind);
      }
      return seen;
    };

    it('paid once two blocks follow its own, with and without a hint', async () => {
      for (const isHinted of [true, false]) {
        const { proof } = await actors.buyer();
        const transaction = await actors.submit(proof);
        assert.deepEqual(await kinds(about(proof, isHinted ? transaction : undefined)), ['unknown', 'unknown', 'paid']);
      }
    });

    it('cancelled or spent elsewhere, as deep: a refusal must be final too', async () => {
      for (const spoil of [actors.cancel, actors.spendOnSelf]) {
        const { account, proof } = await actors.buyer();
        await spoil(account, proof);
        assert.deepEqual(await kinds(about(proof)), ['unknown', 'unknown', 'worthless']);
      }
    });

    it('expired once a confirmed block is past its end', async () => {
      const validBefore = nowSeconds() + 100;
      const proof = await genuineProof(freshAccount(), terms, { validBefore: String(validBefore) });
      const snapshot = await local.request('evm_snapshot', []);
      await local.request('evm_setNextBlockTimestamp', [validBefore]);
      await mine();
      assert.deepEqual(await kinds(about(proof)), ['unknown', 'unknown', 'worthless']);
      await local.request('evm_revert', [snapshot]);
    });

    it('a payment that a reorganisation takes back is unknown, where one confirmation shows it as paid', async () => {
      const { proof } = await actors.buyer();
      const snapshot = await local.request('evm_snapshot', []);
      const transaction = await actors.submit(proof);
      await mine();
      assert.equal((await chain.readEvidence(about(proof, transaction))).kind, 'paid');
      assert.equal((await createChain(rpc, 3).readEvidence(about(proof, transaction))).kind, 'unknown');
      await local.request('evm_revert', [snapshot]);
      assert.equal((await createChain(rpc, 3).readEvidence(about(proof, transaction))).kind, 'open');
    });
  });

  it('unknown, not worthless, while the node cannot find the log of a spent nonce', async () => {
    const { proof } = await actors.buyer();
    await actors.submit(proof);
    assert.equal((await readThrough('eth_getLogs', 'empty', about(proof))).kind, 'unknown');
  });

  it('unknown when the node fails at any of its answers', async () => {
    const { proof } = await actors.buyer();
    await actors.submit(proof);
    const asked = ['eth_getBlockByNumber', 'eth_call', 'eth_getLogs', 'eth_getTransactionReceipt'];
    for (const failing of asked)
      for (const fault of ['fail', 'lose', 'empty'] as const)
        assert.equal((await readThrough(failing, fault, about(proof))).kind, 'unknown', `${failing} ${fault}`);
  });

  it('a payer that is a contract pays with a signature of its owner', async () => {
    const owner = freshAccount();
    const wallet = freshAddress();
    await local.request('anvil_setCode', [wallet, CONTRACTS.contracts.ContractWallet.deployedBytecode]);
    await local.fundGas(owner.address);
    const own = encodeFunctionData({ abi: parseAbi(['function own(address owner_)']), args: [owner.address] });
    await local.send(owner.address, wallet, own);
    await local.mint(wallet, PRICE_UNITS);
    assert.deepEqual([await chain.hasCode(wallet), await chain.hasCode(owner.address)], [true, false]);

    const authorization = authorize(wallet, offer);
    const signature = await sign(owner, authorization, terms);
    const payload = { x402Version: 2, accepted: offer, payload: { signature, authorization } } as const;
    const proof: Proof = { payId: '', payload, signedBy: 'contract' };
    const rail = await createLocalRail({ rpc, chain, terms, privateKey: local.relayerKey });
    assert.deepEqual(await rail.verify(proof, offer), { kind: 'valid' });
    assert.equal((await rail.settle(proof, offer, async () => undefined)).kind, 'settled');
    const stranger = await sign(freshAccount(), authorize(wallet, offer), terms);
    const forged = {
      ...proof,
      payload: { ...payload, payload: { signature: stranger, authorization: authorize(wallet, offer) } },
    };
    const refusal = { kind: 'refused', reason: 'invalid_exact_evm_payload_signature', nonceSpent: false };
    assert.deepEqual(await rail.verify(forged, offer), refusal);
  });

  describe('of the configured asset', () => {
    const rows: readonly (readonly [what: string, change: () => Partial<Terms>, fields: readonly string[]])[] = [
      ['agrees', () => ({}), []],
      ['another name', () => termsFor({ ...local.token, name: 'USDC' }), ['assetName', 'domainSeparator']],
      ['another version', () => termsFor({ ...local.token, version: '1' }), ['assetVersion', 'domainSeparator']],
      ['other decimals', () => ({ assetDecimals: 18 }), ['assetDecimals']],
      ['another chain', () => ({ chainId: 8453 }), ['network']],
      ['no contract', () => ({ asset: freshAddress() }), ['asset']],
      [
        'a contract that is no token',
        () => ({ asset: MULTICALL3_ADDRESS }),
        ['assetDecimals', 'assetName', 'assetVersion'],
      ],
    ];
    for (const [what, change, fields] of rows)
      it(`${what}: ${fields.join(', ') || 'no difference'}`, async () => {
        const differences = await checkAsset(rpc, { ...terms, ...change() });
        assert.deepEqual(
          differences.map(({ field }) => field),
          fields,
        );
      });

    it('stays open when the node fails', async () => {
      const checked = throughFaultyNode(
        local.rpcUrl,
        () => 'fail',
        (faulty) => checkAsset(faulty, terms),
      );
      await assert.rejects(checked);
    });
  });
});
