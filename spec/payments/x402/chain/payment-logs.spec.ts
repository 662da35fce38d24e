import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { OversizedAnswer } from '../../../../src/payments/x402/chain/http-json.ts';
import { paymentsTo } from '../../../../src/payments/x402/chain/payment-logs.ts';
import { type Rpc, RpcRefusal } from '../../../../src/payments/x402/chain/rpc.ts';
import { openStage, type Stage } from '../stage.ts';

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
