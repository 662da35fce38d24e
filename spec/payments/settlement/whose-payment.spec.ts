import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PAID } from './scripted-rail.ts';
import { worldOfEachTest } from './world.ts';

describe('a payment to a payee that others may use', () => {
  const world = worldOfEachTest();
  const { settleOnce, settleAfter, record, state, receipts, countOf } = world;
  const OTHERS = { ...PAID, by: 'others' } as const;
  const UNKNOWN = { ...PAID, by: 'unknown' } as const;

  it('of another store is answered 409, and makes no receipt and no refund', async () => {
    world.payToExclusive = false;
    world.peer.script.settle = async () => OTHERS;
    for (let time = 0; time < 2; time += 1) assert.deepEqual(await settleOnce(), { kind: 'spent', state: 'used' });
    assert.deepEqual(world.peer.names(), ['verify', 'settle'], 'its record answers the second one');
    assert.partialDeepStrictEqual(await record(), { state: 'refused', evidence: 'unclaimed' });
    assert.deepEqual([world.unclaimed, await receipts()], [[world.terms.payId], []]);
    assert.deepEqual([await countOf('payment.settled'), await countOf('payment.rejected')], [0, 1]);
  });

  it('of another store is found after a crash and behind the work of a backend', async () => {
    world.payToExclusive = false;
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    world.peer.script.reconcile = async () => OTHERS;
    await settleOnce();
    assert.deepEqual(await settleOnce(), { kind: 'spent', state: 'used' });
    world.terms = { ...world.terms, payId: 'a'.repeat(64) };
    world.peer.script.settle = async () => OTHERS;
    assert.deepEqual(await settleAfter(), { kind: 'spent', state: 'used' });
    assert.deepEqual(
      world.unpaid.map(({ payId, reason }) => [payId, reason]),
      [[world.terms.payId, 'invalid_exact_evm_nonce_already_used']],
    );
  });

  it('stays uncertain where an attempt of this store may have made it, until something shows that it did', async () => {
    world.payToExclusive = false;
    world.peer.script.settle = async () => UNKNOWN;
    world.peer.script.reconcile = async () => UNKNOWN;
    for (let time = 0; time < 3; time += 1) assert.equal((await settleOnce()).kind, 'uncertain');
    assert.deepEqual([await state(), (await record())?.transaction, await receipts()], ['settling', undefined, []]);
    world.peer.script.reconcile = async () => PAID;
    assert.equal((await settleOnce()).kind, 'paid');
    assert.deepEqual(world.unclaimed, []);
  });

  it('counts, by any account, where no other store or seller uses the payee', async () => {
    for (const paid of [OTHERS, UNKNOWN]) {
      world.terms = { ...world.terms, payId: paid === OTHERS ? 'a'.repeat(64) : 'b'.repeat(64) };
      world.peer.script.settle = async () => paid;
      assert.equal((await settleOnce()).kind, 'paid');
    }
  });
});
