import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { checkAsset } from '../../../../src/payments/x402/chain/asset-check.ts';
import { type Chain, createChain, type EvidenceQuery } from '../../../../src/payments/x402/chain/chain.ts';
import { OversizedAnswer } from '../../../../src/payments/x402/chain/http-json.ts';
import { paymentsTo } from '../../../../src/payments/x402/chain/payment-logs.ts';
import { type Rpc, RpcRefusal } from '../../../../src/payments/x402/chain/rpc.ts';
import type { Proof } from '../../../../src/payments/x402/wire/types.ts';
import type { Chain as LocalChain } from '../../../../tools/local-world/chain.ts';
import { MULTICALL3_ADDRESS } from '../../../../tools/local-world/contracts.ts';
import {
  freshAccount,
  freshAddress,
  genuineProof,
  nowSeconds,
  type offerFor,
  type Terms,
  termsFor,
} from '../signing.ts';
import type { ChainActors } from '../stage.ts';
import { type Fault, openStage, type Stage, throughFaultyNode } from '../stage.ts';

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

  it('unknown when the node fails at any of its answers', async () => {
    const { proof } = await actors.buyer();
    await actors.submit(proof);
    const asked = ['eth_getBlockByNumber', 'eth_call', 'eth_getLogs', 'eth_getTransactionReceipt'];
    for (const failing of asked)
      for (const fault of ['fail', 'lose', 'empty'] as const)
        assert.equal((await readThrough(failing, fault, about(proof))).kind, 'unknown', `${failing} ${fault}`);
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

/** Blocks without a payment before, between and behind the payments: more than one query takes. */
const GAP = 200;
const BLOCKS_PER_QUERY = 150n;

describe('the search for payments', () => {
  let stage: Stage;
  let last: bigint;
  const paid: string[] = [];

  before(async () => {
    stage = await openStage();
    for (let i = 0; i < 3; i += 1) {
      await stage.local.request('anvil_mine', [`0x${GAP.toString(16)}`]);
      for (let j = 0; j < 2; j += 1) paid.push(await stage.actors.submit((await stage.actors.buyer()).proof));
    }
    last = BigInt(String(await stage.local.request('eth_blockNumber', [])));
  });
  after(() => stage.close());

  /** The same chain behind a node that refuses too many blocks: `refuse` throws its answer. */
  const limited = (refuse: (blocks: bigint) => void): { readonly node: Rpc; readonly widths: bigint[] } => {
    const widths: bigint[] = [];
    const call: Rpc['call'] = async (method, params, deadlineMs) => {
      if (method === 'eth_getLogs') {
        const [{ fromBlock, toBlock }] = params as [{ fromBlock: string; toBlock: string }];
        const width = BigInt(toBlock) - BigInt(fromBlock) + 1n;
        refuse(width);
        widths.push(width);
      }
      return stage.rpc.call(method, params, deadlineMs);
    };
    return { node: { call, close: async () => undefined }, widths };
  };
  const found = async (node: Rpc, first = 0n, through = last): Promise<readonly string[]> => {
    const { asset, payTo } = stage.terms;
    const search = { asset, payTo, first, last: through, blocksPerQuery: BLOCKS_PER_QUERY };
    const transactions: string[] = [];
    for await (const { transaction } of paymentsTo(node, search)) transactions.push(transaction);
    return transactions;
  };

  it('finds every one, once, oldest first, in ranges that public nodes take', async () => {
    const { node, widths } = limited(() => undefined);
    assert.deepEqual(await found(node), paid);
    assert.equal(
      widths.reduce((sum, width) => sum + width, 0n),
      last + 1n,
      'every block is searched once',
    );
    assert.ok(widths.every((width) => width <= BLOCKS_PER_QUERY));
  });

  it('searches the first and the last block as well', async () => {
    const block = await stage.local.request('eth_getTransactionReceipt', [paid[5] ?? '']);
    const number = BigInt((block as { readonly blockNumber: string }).blockNumber);
    assert.deepEqual(await found(stage.rpc, number, number), [paid[5]]);
    assert.deepEqual(await found(stage.rpc, number + 1n), []);
  });

  const limits: readonly (readonly [what: string, most: bigint, error: () => Error])[] = [
    ['fewer blocks', 40n, () => new RpcRefusal('eth_getLogs', -32_005, 'query exceeds max block range', false)],
    ['fewer bytes', 15n, () => new OversizedAnswer(1)],
  ];
  for (const [what, most, error] of limits)
    it(`asks for less when the node allows ${what} at a time`, async () => {
      const { node, widths } = limited((blocks) => {
        if (blocks > most) throw error();
      });
      assert.deepEqual(await found(node), paid);
      assert.equal(
        widths.reduce((sum, width) => sum + width, 0n),
        last + 1n,
      );
      assert.ok(BigInt(widths.length) < 4n * (last / most), `${widths.length} queries are too many`);
    });

  it('asks again when the node fails or limits the rate', async () => {
    const errors = [
      new Error('no JSON-RPC answer (503)'),
      new RpcRefusal('eth_getLogs', 429, 'too many requests', false),
    ];
    const { node } = limited(() => {
      const error = errors.shift();
      if (error !== undefined) throw error;
    });
    assert.deepEqual(await found(node), paid);
  });

  it('fails when a single block is too much, instead of leaving it out', async () => {
    const { node } = limited(() => {
      throw new OversizedAnswer(7);
    });
    await assert.rejects(found(node), OversizedAnswer);
  });
});
