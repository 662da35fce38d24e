import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { clientOver, readHead } from '../../../../src/payments/x402/chain/client.ts';
import { type Rpc, RpcRefusal } from '../../../../src/payments/x402/chain/rpc.ts';
import { FEW_TRANSACTIONS, type Look, watchBlocks } from '../../../../src/payments/x402/local/block-watch.ts';
import { PoolNode } from './pool-node.ts';

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
      call,
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
    return { node, watch, clock, next, asked, stop };
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
      assert.equal(asked(ONE_BY_ONE) - before[ONE_BY_ONE], method === BY_BLOCK ? 0 : count);
      stop();
    });

  it('asks one by one from then on where the node does not know the method', async () => {
    const { node, watch, next, asked, stop } = watching(FEW_TRANSACTIONS + 1, (call) => (method, params) => {
      if (method === BY_BLOCK) throw new RpcRefusal(method, -32_601, 'method not found', false);
      return call(method, params);
    });
    watch.begin();
    await next(complete);
    for (const blocks of [1, 2]) {
      node.mine();
      await next(complete);
      assert.equal(asked(ONE_BY_ONE), (blocks + 1) * (FEW_TRANSACTIONS + 1));
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
