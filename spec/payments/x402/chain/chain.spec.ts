import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { getAddress, numberToHex, padHex, toEventSelector } from 'viem';
import { checkAsset } from '../../../../src/payments/x402/chain/asset-check.ts';
import {
  type Chain,
  createChain,
  type EvidenceQuery,
  findPayment,
  fromBlocks,
  MAX_BLOCKS_BACK,
  paymentsIn,
} from '../../../../src/payments/x402/chain/chain.ts';
import { OversizedAnswer } from '../../../../src/payments/x402/chain/http-json.ts';
import { type Rpc, RpcRefusal, type TransactionReceipt } from '../../../../src/payments/x402/chain/node.ts';
import { firstBlockSince, paymentsTo } from '../../../../src/payments/x402/chain/payment-logs.ts';
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
import { type ChainActors, type Fault, openStage, type Stage, throughFaultyNode } from '../stage.ts';

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

type Hex = `0x${string}`;

const TRANSFER = toEventSelector('Transfer(address,address,uint256)');
const AUTHORIZATION_USED = toEventSelector('AuthorizationUsed(address,bytes32)');
const MINED = { transactionHash: `0x${'c'.repeat(64)}`, blockNumber: 7n } as const;
const payment = {
  asset: freshAddress(),
  from: freshAddress(),
  payTo: freshAddress(),
  nonce: `0x${'a1'.repeat(32)}` as Hex,
  value: '10000',
};
const { asset, from, payTo, nonce, value } = payment;
const otherNonce: Hex = `0x${'b2'.repeat(32)}`;

type Draft = Pick<TransactionReceipt['logs'][number], 'address' | 'topics' | 'data'>;
const inOrder = (drafts: readonly Draft[]) =>
  drafts.map((draft, logIndex) => ({ ...draft, logIndex })) as TransactionReceipt['logs'];
const used = (payer = from, spent = nonce): Draft => ({
  address: asset,
  topics: [AUTHORIZATION_USED, padHex(payer, { size: 32 }), spent],
  data: '0x',
});
const moved = (changes: { source?: Hex; to?: Hex; units?: string; by?: Hex } = {}): Draft => {
  const { source = from, to = payTo, units = value, by = asset } = changes;
  const data = numberToHex(BigInt(units), { size: 32 });
  const topics = [TRANSFER, padHex(source, { size: 32 }), padHex(to, { size: 32 })] as const;
  return { address: by, topics: [...topics], data };
};

/** An event of the asset that no rule names. */
const other: Draft = { address: asset, topics: [toEventSelector('Approval(address,address,uint256)')], data: '0x' };

describe('the log pair that proves a payment', () => {
  const rows: readonly (readonly [what: string, logs: readonly Draft[], finding: string])[] = [
    ['used and transferred to the payee', [used(), moved()], 'paid'],
    ['a log of another contract in between', [used(), moved({ by: freshAddress() }), moved()], 'paid'],
    ['another event of the asset in between', [used(), other, moved()], 'unclear'],
    ['second of a batch', [used(from, otherNonce), moved({ to: freshAddress() }), used(), moved()], 'paid'],
    ['used, nothing transferred', [used()], 'elsewhere'],
    ['transferred to the payer itself', [used(), moved({ to: from })], 'elsewhere'],
    ['transferred by another payer', [used(), moved({ source: freshAddress() })], 'elsewhere'],
    ['one unit less', [used(), moved({ units: '9999' })], 'elsewhere'],
    ['one unit more', [used(), moved({ units: '10001' })], 'elsewhere'],
    ['transferred in another token', [used(), moved({ by: freshAddress() })], 'elsewhere'],
    [
      'the transfer of the next authorization does not count for this one',
      [used(), moved({ to: from }), used(from, otherNonce), moved()],
      'elsewhere',
    ],
    ['the transfer before the use', [moved(), used()], 'unclear'],
    ['another nonce', [used(from, otherNonce), moved()], 'absent'],
    ['the nonce of another payer', [used(freshAddress()), moved()], 'absent'],
    ['the use logged by another contract', [{ ...used(), address: freshAddress() }, moved()], 'absent'],
    ['a plain transfer', [moved()], 'absent'],
    ['nothing', [], 'absent'],
  ];
  for (const [what, drafts, finding] of rows)
    it(`${what}: ${finding}`, () => {
      const logs = inOrder(drafts);
      const receipt = { ...MINED, status: 'success', logs: logs.toReversed() } as const;
      assert.equal(findPayment(receipt, payment), finding);
    });

  it('counts in a successful receipt only', () => {
    const logs = inOrder([used(), moved()]);
    assert.equal(findPayment({ ...MINED, status: 'reverted', logs }, payment), 'absent');
  });
});

describe('the payments that a receipt shows', () => {
  const shown = (drafts: readonly Draft[], status: TransactionReceipt['status'] = 'success') => {
    const logs = inOrder(drafts).toReversed();
    return paymentsIn({ ...MINED, status, logs }, { asset: getAddress(asset), payTo });
  };
  const another = freshAddress();
  it('are the pairs to the payee, each with its own payer, nonce and sum', () => {
    const logs = [
      used(),
      moved(),
      used(another, otherNonce),
      moved({ source: another, units: '7' }),
      used(another),
      moved({ source: another, to: freshAddress() }),
    ];
    assert.deepEqual(shown(logs), [
      { from, nonce, units: 10_000n },
      { from: another, nonce: otherNonce, units: 7n },
    ]);
  });
  const none: readonly (readonly [what: string, logs: readonly Draft[]])[] = [
    ['a plain transfer', [moved()]],
    ['an authorization that moved nothing', [used(), moved({ units: '0' })]],
    ['an authorization with no transfer', [used()]],
    ['a transfer by another payer', [used(), moved({ source: another })]],
    ['a transfer before the authorization', [moved(), used()]],
    ['an authorization and its transfer with another event between them', [used(), other, moved()]],
    ['a transfer that is not the next log', [used(), moved({ to: another }), moved()]],
    ['another token', [{ ...used(), address: another }, moved({ by: another })]],
  ];
  for (const [what, logs] of none) it(`${what}: none`, () => assert.deepEqual(shown(logs), []));
  it('are none when the transaction failed', () => assert.deepEqual(shown([used(), moved()], 'reverted'), []));
});

describe('the first block of a time', () => {
  // A block every other second, from second 100 on.
  const blockAt = async (number: bigint) => ({ number, timestamp: 100 + 2 * Number(number), baseFee: 0n });
  const rows: readonly (readonly [since: number, first: bigint])[] = [
    [0, 0n],
    [100, 0n],
    [101, 1n],
    [102, 1n],
    [2_100, 1_000n],
    [2_101, 1_001n],
  ];
  for (const [since, first] of rows)
    it(`${since} s is ${first}`, async () => {
      assert.equal(await firstBlockSince(since, await blockAt(1_000n), blockAt), first);
    });
});

describe('the search for a log', () => {
  const ranges = async (number: bigint, secondsBack: number, secondsPerBlock: number) => {
    const head = { number, timestamp: 2_000_000_000, baseFee: 0n };
    const found: { from: bigint; to: bigint }[] = [];
    const blockAt = async (at: bigint) => ({
      ...head,
      number: at,
      timestamp: head.timestamp - Number(number - at) * secondsPerBlock,
    });
    for await (const { fromBlock, toBlock } of fromBlocks(head, head.timestamp - secondsBack, blockAt))
      found.push({ from: BigInt(fromBlock), to: toBlock === 'latest' ? number : BigInt(toBlock) });
    return found;
  };

  it('covers a young chain from its first block in one query', async () => {
    assert.deepEqual(await ranges(40n, 600, 2), [{ from: 0n, to: 40n }]);
  });

  const rows: readonly (readonly [secondsBack: number, secondsPerBlock: number])[] = [
    [720, 2],
    [720, 0.25],
    [90_000, 12],
    [40_000, 1],
    [0, 2],
  ];
  for (const [secondsBack, secondsPerBlock] of rows)
    it(`reaches ${secondsBack} s back at ${secondsPerBlock} s a block, without gap or overlap, newest first`, async () => {
      const number = 50_000_000n;
      const found = await ranges(number, secondsBack, secondsPerBlock);
      assert.equal(found[0]?.to, number);
      for (const [index, range] of found.entries()) {
        assert.ok(range.to - range.from < 9_000n);
        const next = found[index + 1];
        if (next !== undefined) assert.equal(next.to, range.from - 1n);
      }
      assert.ok(number - (found.at(-1)?.from ?? number) >= BigInt(Math.floor(secondsBack / secondsPerBlock)));
    });

  it('gives up at a bound', async () => {
    const found = await ranges(50_000_000n, 10_000_000, 1);
    assert.equal(50_000_000n - (found.at(-1)?.from ?? 0n), MAX_BLOCKS_BACK);
  });
});
