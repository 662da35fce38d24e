import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PaymentLedger } from '../../../src/payments/ledger/ledger.ts';
import { StoreError } from '../../../src/store/port/store.ts';
import { PAID } from './scripted-rail.ts';
import { tillOfEachTest } from './till.ts';
import { rest } from './virtual-time.ts';

describe('a reservation that the store never answered', () => {
  const till = tillOfEachTest();
  const { take, broken, record } = till;

  /** The first reservation is carried out by a store that hangs so long that nobody hears of it. */
  const hanging = (mayStand = true): PaymentLedger => {
    let asked = 0;
    return broken({
      async reserve(command) {
        asked += 1;
        if (asked > 1) return till.ledger.reserve(command);
        await till.ledger.reserve(command);
        throw new StoreError('silent', mayStand);
      },
    });
  };

  it('is given back as soon as the store answers: the same proof need not wait for a lease that nobody holds', async () => {
    await assert.rejects(take({}, hanging()), StoreError);
    await rest();
    assert.equal(await record(), undefined);
    assert.equal((await take()).kind, 'paid');
  });

  it('of a settlement that is under way already: the lease is given up, the record stays', async () => {
    till.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    await take();
    till.peer.script.reconcile = async () => PAID;
    await assert.rejects(take({}, hanging()), StoreError);
    await rest();
    const { state, leaseUntil } = (await record()) ?? {};
    assert.deepEqual([state, leaseUntil], ['settling', 0]);
    assert.equal((await take()).kind, 'paid');
  });

  it('and that certainly never left is not asked about', async () => {
    await assert.rejects(take({}, hanging(false)), StoreError);
    await rest();
    assert.equal((await record())?.state, 'reserved', 'this one stands for another call that runs');
  });
});
