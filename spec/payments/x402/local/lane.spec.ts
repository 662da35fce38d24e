import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PRICE_UNITS } from '../signing.ts';
import { pass, RULES, settledDown } from './lane-rules.ts';
import { freshPayer, type LaneStage, type Ordered, openLaneStage } from './lane-stage.ts';

describe('the settlement lane', () => {
  for (const { title, play } of RULES) it(title, async () => play(await openLaneStage()));

  it('writes no hash over that of a transaction that came into a block before its fees were raised', async () => {
    const turn = Promise.withResolvers<void>();
    const stage = await openLaneStage({
      relayer: (relayer) => ({
        ...relayer,
        async replace(...asked) {
          await turn.promise;
          return relayer.replace(...asked);
        },
      }),
    });
    const order = stage.order();
    await stage.offered(1);
    await pass(stage);
    await stage.mineAll();
    assert.equal((await order.ended()).kind, 'settled');
    turn.resolve();
    await settledDown(stage);
    assert.equal(order.written.length, 1);
    assert.equal(stage.node.offered.length, 1);
  });

  it('gives payments the next number where another process with the key was first in the pool', async () => {
    const first = await openLaneStage();
    const second = await openLaneStage({
      rpc: (rpc) => ({ ...rpc, call: (method, params) => first.node.call(method, params) }),
    });
    const payer = freshPayer();
    first.node.balances.set(payer, PRICE_UNITS);
    const orders = [first.order(), second.order({ payer })];
    await first.offered(3);
    first.node.mine();
    await Promise.all([first.look(), second.look()]);
    for (const order of orders) assert.equal((await order.ended()).kind, 'settled');
  });

  it('writes no hash over that of a batch that failed as a whole before its fees were raised', async () => {
    const turn = Promise.withResolvers<void>();
    const stage = await openLaneStage({
      relayer: (relayer) => ({
        ...relayer,
        async replace(...asked) {
          await turn.promise;
          return relayer.replace(...asked);
        },
      }),
    });
    const orders = [stage.order(), stage.order(), stage.order()];
    await stage.offered(2);
    stage.node.mine(({ nonce = 0 }) => nonce === 1);
    await stage.look();
    await pass(stage);
    stage.node.batchesRevert = true;
    await stage.mineAll();
    await stage.offered(4);
    turn.resolve();
    await settledDown(stage);
    assert.equal(stage.node.offered.length, 4);
    await stage.mineAll();
    for (const order of orders) assert.equal((await order.ended()).kind, 'settled');
    for (const { written } of orders.slice(1)) assert.equal(written.length, 2);
  });

  it('raises nothing after a look that could not read the receipts', async () => {
    let fails = false;
    const stage = await openLaneStage({
      rpc: (rpc) => ({
        ...rpc,
        async call(method, params) {
          if (fails && method === 'eth_getTransactionReceipt') throw new Error('no answer');
          return rpc.call(method, params);
        },
      }),
    });
    const order = stage.order();
    await stage.offered(1);
    fails = true;
    await pass(stage);
    await settledDown(stage);
    assert.equal(stage.node.offered.length, 1, 'it may be in one of the blocks');
    fails = false;
    await pass(stage);
    await stage.offered(2);
    await stage.mineAll();
    assert.equal((await order.ended()).kind, 'settled');
  });

  const CONFIRMATIONS = 3;
  const mineOne = async (stage: LaneStage): Promise<Ordered> => {
    const order = stage.order();
    await stage.offered(1);
    await stage.mineAll();
    await settledDown(stage);
    return order;
  };

  it(`settles a payment once ${CONFIRMATIONS} blocks hold it, where so many confirmations are asked for`, async () => {
    const stage = await openLaneStage({ confirmations: CONFIRMATIONS });
    const order = await mineOne(stage);
    for (let blocks = 2; blocks <= CONFIRMATIONS; blocks += 1) {
      assert.equal(stage.underWay.hashes().length, 1, `${blocks - 1} of ${CONFIRMATIONS} blocks hold it`);
      assert.equal(stage.underWay.unmined, 0);
      await stage.mineAll();
      await settledDown(stage);
    }
    assert.equal((await order.ended()).kind, 'settled');
    assert.deepEqual(stage.underWay.hashes(), []);
  });

  it('forgets one that is in a block when its payments are late, whatever confirms it', async () => {
    const stage = await openLaneStage({ confirmations: CONFIRMATIONS });
    const order = await mineOne(stage);
    stage.clock.now += 60_000;
    await stage.mineAll();
    assert.notEqual(await order.ended(), undefined);
    assert.deepEqual(stage.underWay.hashes(), []);
  });

  it('raises the fees of one that a reorganisation took out of its block', async () => {
    const stage = await openLaneStage({ confirmations: CONFIRMATIONS });
    const order = await mineOne(stage);
    const [first] = stage.node.taken;
    stage.node.undo();
    stage.node.putBack(first);
    await pass(stage);
    await stage.offered(2);
    assert.equal(stage.underWay.unmined, 1);
    for (let blocks = 0; blocks < CONFIRMATIONS; blocks += 1) await stage.mineAll();
    assert.equal((await order.ended()).transaction, stage.node.taken[1]?.hash);
  });
});
