import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PRICE_UNITS } from '../signing.ts';
import { pass, RULES, settledDown } from './lane-rules.ts';
import { freshPayer, openLaneStage } from './lane-stage.ts';

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
});
