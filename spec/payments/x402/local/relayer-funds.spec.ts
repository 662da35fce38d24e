import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { type FundsWatch, LOOK_AGAIN_MS, watchFunds } from '../../../../src/payments/x402/local/relayer-funds.ts';

const GAS = 10n;

describe('the gas money of a relayer', () => {
  let clock = 0;
  let looks = 0;
  let balance: bigint | 'silent' = 0n;
  let funds: FundsWatch;

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
