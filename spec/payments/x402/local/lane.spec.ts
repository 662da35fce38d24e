import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pass, RULES, settledDown } from './lane-rules.ts';
import { openLaneStage } from './lane-stage.ts';

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
});
