import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { clientOver, readHead } from '../../../../src/payments/x402/chain/client.ts';
import { RpcRefusal } from '../../../../src/payments/x402/chain/rpc.ts';
import {
  type FeeWatch,
  HEAD_FRESH_MS,
  LOOK_AGAIN_MS,
  TIP_FRESH_MS,
  watchFees,
  watchFunds,
} from '../../../../src/payments/x402/local/relayer.ts';
import { PoolNode } from './lane-stage.ts';

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

const GAS = 10n;

describe('the gas money of a relayer', () => {
  let clock = 0;
  let looks = 0;
  let balance: bigint | 'silent' = 0n;
  let funds: ReturnType<typeof watchFunds>;

  beforeEach(() => {
    clock = 0;
    looks = 0;
    balance = 100n;
    funds = watchFunds(
      async () => {
        looks += 1;
        if (balance === 'silent') throw new Error('no answer');
        return { balance, maxFeePerGas: 10n };
      },
      () => clock,
    );
  });

  it('is read once, and never again while there is enough', async () => {
    for (let call = 0; call < 5; call += 1) {
      assert.equal(await funds.isShort(GAS), false);
      clock += 10 * LOOK_AGAIN_MS;
    }
    assert.equal(looks, 1);
  });

  it('is short by the gas that is wanted: what a balance pays to the last wei is enough', async () => {
    assert.equal(await funds.isShort(GAS), false);
    assert.equal(await funds.isShort(GAS + 1n), true);
  });

  it('is read once a second while it is short, by all calls together', async () => {
    balance = 99n;
    assert.deepEqual(await Promise.all([funds.isShort(GAS), funds.isShort(GAS), funds.isShort(GAS)]), [
      true,
      true,
      true,
    ]);
    clock = LOOK_AGAIN_MS - 1;
    balance = 100n;
    assert.equal(await funds.isShort(GAS), true);
    assert.equal(looks, 1);
    clock = LOOK_AGAIN_MS;
    assert.equal(await funds.isShort(GAS), false);
    assert.equal(looks, 2);
  });

  it('is short for a second after a node refused, whatever the balance: its pool may hold other transactions', async () => {
    assert.equal(await funds.isShort(GAS), false);
    funds.refused();
    assert.equal(await funds.isShort(GAS), true);
    clock = LOOK_AGAIN_MS;
    assert.equal(await funds.isShort(GAS), false);
  });

  it('is enough again with the next readiness check', async () => {
    funds.refused();
    await funds.look();
    assert.equal(await funds.isShort(GAS), false);
  });

  it('is not short because the node is silent, and stays short when it was', async () => {
    balance = 'silent';
    assert.equal(await funds.isShort(GAS), false);
    balance = 0n;
    assert.equal(await funds.isShort(GAS), true);
    balance = 'silent';
    clock = LOOK_AGAIN_MS;
    assert.equal(await funds.isShort(GAS), true);
  });
});
