import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { keccak256 } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { clientOver, type Rpc, RpcRefusal, readHead } from '../../../../src/payments/x402/chain/node.ts';
import { transferCall } from '../../../../src/payments/x402/evm/eip3009.ts';
import {
  BY_BLOCK_AGAIN_MS,
  FEW_TRANSACTIONS,
  type Look,
  watchBlocks,
} from '../../../../src/payments/x402/local/under-way.ts';
import { authorize } from '../signing.ts';
import { ASSET, OFFER, PoolNode } from './lane-stage.ts';

/** Longest wait for a look that must come, milliseconds. */
const SOON_MS = 10_000;

describe('the watch for blocks', () => {
  /** A watch over a node in memory that waits for `count` transactions. */
  const watching = (count: number, change: (call: Rpc['call']) => Rpc['call'] = (call) => call) => {
    const node = new PoolNode();
    const call = change((method, params) => node.call(method, params));
    const client = clientOver(call);
    const waits: { wants: (look: Look) => boolean; resolve: (look: Look) => void }[] = [];
    const clock = { now: 0 };
    let awaited = Array.from({ length: count }, (_, at) => `0x${(at + 1).toString(16).padStart(64, '0')}`);
    const watch = watchBlocks({
      client,
      rpc: { call },
      head: () => readHead(client),
      awaited: () => awaited,
      looked(look) {
        for (const { wants, resolve } of waits) if (wants(look)) resolve(look);
      },
      now: () => clock.now,
    });
    const next = (wants: (look: Look) => boolean): Promise<Look> =>
      new Promise((resolve, reject) => {
        waits.push({ wants, resolve });
        setTimeout(() => reject(new Error('no such look')), SOON_MS).unref();
      });
    const asked = (method: string): number => node.asked.filter((one) => one === method).length;
    const stop = (): void => {
      awaited = [];
    };
    const awaits = (hash: string): void => {
      awaited = [hash, ...awaited];
    };
    return { node, watch, clock, next, asked, stop, awaits };
  };
  const complete = (look: Look): boolean => look.complete;
  const BY_BLOCK = 'eth_getBlockReceipts';
  const ONE_BY_ONE = 'eth_getTransactionReceipt';

  it('reads receipts once for a block, however often it looks', async () => {
    const { node, watch, next, asked, stop } = watching(1);
    watch.begin();
    await next(complete);
    await next((look) => !look.complete);
    assert.equal(asked(ONE_BY_ONE), 1);
    node.mine();
    assert.equal((await next(complete)).head?.number, 2n);
    assert.equal(asked(ONE_BY_ONE), 2);
    stop();
  });

  it('reads them again after a second: another node may answer behind the same address', async () => {
    const { watch, clock, next, asked, stop } = watching(1);
    watch.begin();
    await next(complete);
    clock.now += 1_000;
    await next(complete);
    assert.equal(asked(ONE_BY_ONE), 2);
    stop();
  });

  for (const [count, method] of [
    [FEW_TRANSACTIONS, ONE_BY_ONE],
    [FEW_TRANSACTIONS + 1, BY_BLOCK],
  ] as const)
    it(`asks for the receipts of ${count} transactions in a new block by ${method}`, async () => {
      const { node, watch, next, asked, stop } = watching(count);
      watch.begin();
      await next(complete);
      const before = { [ONE_BY_ONE]: asked(ONE_BY_ONE), [BY_BLOCK]: asked(BY_BLOCK) };
      node.mine();
      await next(complete);
      assert.equal(asked(BY_BLOCK) - before[BY_BLOCK], method === BY_BLOCK ? 1 : 0);
      // None of them is in that block.
      assert.equal(asked(ONE_BY_ONE) - before[ONE_BY_ONE], count);
      stop();
    });

  it('finds a receipt in each of the blocks that confirm it, also where receipts are read by block', async () => {
    const { node, watch, next, asked, stop, awaits } = watching(FEW_TRANSACTIONS + 1);
    watch.begin();
    await next(complete);
    const hash = await broadcast(node);
    awaits(hash);
    for (const block of [2n, 3n]) {
      node.mine();
      const look = await next((one) => one.complete && one.head?.number === block);
      assert.equal(look.receipts.get(hash)?.blockNumber, 2n);
    }
    assert.equal(asked(BY_BLOCK), 2);
    stop();
  });

  it('finds a receipt in a block that was read before its transaction was awaited', async () => {
    const { node, watch, next, stop, awaits } = watching(FEW_TRANSACTIONS + 1);
    watch.begin();
    await next(complete);
    const hash = await broadcast(node);
    node.mine();
    await next((look) => look.complete && look.head?.number === 2n);
    awaits(hash);
    node.mine();
    const look = await next((one) => one.complete && one.head?.number === 3n);
    assert.equal(look.receipts.get(hash)?.blockNumber, 2n);
    stop();
  });

  const failures: readonly (readonly [what: string, error: Error, triedAgain: boolean])[] = [
    ['does not find the method', new RpcRefusal(BY_BLOCK, -32_601, 'no', false), false],
    ['does not support the method', new RpcRefusal(BY_BLOCK, -32_000, 'method not supported', false), false],
    ['is silent', new Error('no answer'), true],
    ['limits its callers', new RpcRefusal(BY_BLOCK, -32_005, 'limit exceeded', false), true],
  ];
  for (const [what, error, triedAgain] of failures)
    it(`asks one by one where the node ${what}, ${triedAgain ? 'and by block after a while' : 'for good'}`, async () => {
      let tried = 0;
      const { node, watch, clock, next, asked, stop } = watching(FEW_TRANSACTIONS + 1, (call) => (method, params) => {
        if (method !== BY_BLOCK) return call(method, params);
        tried += 1;
        throw error;
      });
      watch.begin();
      await next(complete);
      const steps = [
        [0, 1],
        [BY_BLOCK_AGAIN_MS - 1, 1],
        [BY_BLOCK_AGAIN_MS, triedAgain ? 2 : 1],
      ] as const;
      for (const [at, [elapsedMs, tries]] of steps.entries()) {
        clock.now = elapsedMs;
        node.mine();
        await next((look) => look.complete && look.head?.number === BigInt(at + 2));
        assert.equal(tried, tries, `${elapsedMs} ms`);
        assert.ok(asked(ONE_BY_ONE) >= (at + 2) * (FEW_TRANSACTIONS + 1));
      }
      stop();
    });

  it('shows nothing while the node is silent, and goes on', async () => {
    let silent = true;
    const { watch, next, stop } = watching(1, (call) => (method, params) => {
      if (silent) throw new Error('no answer');
      return call(method, params);
    });
    watch.begin();
    const look = await next(() => true);
    assert.deepEqual([look.head, look.complete], [undefined, false]);
    silent = false;
    await next(complete);
    stop();
  });
});

/** Gives the node a transaction of one transfer; answers its hash. */
async function broadcast(node: PoolNode): Promise<string> {
  const account = privateKeyToAccount(generatePrivateKey());
  const data = transferCall(authorize(account.address, OFFER), `0x${'11'.repeat(64)}1b`, 'account');
  const fees = { gas: 1n, maxFeePerGas: 1n, maxPriorityFeePerGas: 1n };
  const raw = await account.signTransaction({ type: 'eip1559', chainId: 1, nonce: 0, to: ASSET, data, ...fees });
  await node.call('eth_sendRawTransaction', [raw]);
  return keccak256(raw);
}
