import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { clientOver, readHead } from '../../../../src/payments/x402/chain/client.ts';
import { RpcRefusal } from '../../../../src/payments/x402/chain/rpc.ts';
import {
  type FeeWatch,
  HEAD_FRESH_MS,
  TIP_FRESH_MS,
  watchFees,
} from '../../../../src/payments/x402/local/relayer-fees.ts';
import { PoolNode } from './pool-node.ts';

const TIP_WEI = 1_000n;
const BASE_WEI = 1_000_000_000n;

describe('the fees of the relayer', () => {
  let node: PoolNode;
  let fees: FeeWatch;
  let clock = 0;
  beforeEach(() => {
    clock = 0;
    node = new PoolNode();
    const client = clientOver((method, params) => node.call(method, params));
    fees = watchFees({ client, head: () => readHead(client), now: () => clock });
  });

  it('leave room for a base fee of twice the newest one', async () => {
    assert.deepEqual(await fees.current(), { maxPriorityFeePerGas: TIP_WEI, maxFeePerGas: 2n * BASE_WEI + TIP_WEI });
  });

  it('are read once while a block is fresh, and not at all where blocks are seen', async () => {
    await fees.current();
    clock = HEAD_FRESH_MS - 1;
    await fees.current();
    assert.equal(node.asked.filter((method) => method === 'eth_getBlockByNumber').length, 1);
    fees.saw({ number: 2n, timestamp: 0, baseFee: 7n });
    clock += HEAD_FRESH_MS - 1;
    assert.equal((await fees.current()).maxFeePerGas, 14n + TIP_WEI);
    clock += 1;
    assert.equal((await fees.current()).maxFeePerGas, 2n * BASE_WEI + TIP_WEI);
  });

  it('ask for the tip again after a while', async () => {
    for (const at of [0, TIP_FRESH_MS - 1, TIP_FRESH_MS]) {
      clock = at;
      await fees.current();
    }
    assert.equal(node.asked.filter((method) => method === 'eth_maxPriorityFeePerGas').length, 2);
  });

  it('offer one gwei where the node suggests no tip', async () => {
    const client = clientOver(async (method) => {
      throw new RpcRefusal(method, -32_601, 'method not found', false);
    });
    const plain = watchFees({ client, head: async () => ({ number: 1n, timestamp: 0, baseFee: 0n }) });
    assert.equal((await plain.current()).maxPriorityFeePerGas, 1_000_000_000n);
  });
});
