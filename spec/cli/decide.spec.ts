import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { UsageError } from '../../src/cli/program.ts';
import { decided, readDecision } from '../../src/cli/reconcile.ts';
import { RETRY_WINDOW_MS } from '../../src/payments/ledger/table.ts';
import { leaveToOperator } from '../../src/payments/settlement/reconciler.ts';
import { HASH, worldOfEachTest } from '../payments/settlement/world.ts';

describe('acg reconcile --decide', () => {
  const world = worldOfEachTest();
  const { settleOnce, record, receipts, types, later } = world;
  const decide = (was: 'paid' | 'unpaid' | 'unclaimed', transaction?: string) =>
    decided(world.ledger, { payId: world.terms.payId, was, ...(transaction === undefined ? {} : { transaction }) });

  beforeEach(async () => {
    world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'cut' });
    await settleOnce();
    world.clock = world.terms.validBefore * 1_000 + RETRY_WINDOW_MS;
    const open = await record();
    assert.ok(open !== undefined);
    await leaveToOperator(world.ledger, open, () => undefined);
    assert.equal((await record())?.state, 'unresolved');
  });

  it('paid: it is settled by the decision, its buyer collects it for a day, and it has its receipt', async () => {
    await decide('paid', HASH);
    const { state, evidence, transaction, settledAt } = (await record()) ?? {};
    assert.deepEqual([state, evidence, transaction, settledAt], ['settled', 'operator', HASH, world.clock]);
    const [receipt, ...others] = await receipts();
    assert.deepEqual(
      [receipt?.payment?.status, receipt?.payment?.externalReference, receipt?.delivered, others.length],
      ['settled', HASH, false, 0],
    );
    assert.equal((await types()).at(-1), 'payment.settled');
    later(1_000);
    const result = await settleOnce();
    assert.ok(result.kind === 'paid');
    await world.deliver(result);
    assert.equal((await receipts())[0]?.delivered, true);
  });

  it('unpaid: its buyer is asked to pay anew, and no receipt is left', async () => {
    await decide('unpaid');
    const { state, evidence } = (await record()) ?? {};
    assert.deepEqual([state, evidence], ['refused', 'operator']);
    assert.deepEqual(await receipts(), []);
    assert.equal((await types()).at(-1), 'payment.rejected');
    const result = await settleOnce();
    assert.ok(result.kind === 'refused' && result.owed.phase === 'settle');
  });

  it('unclaimed: its buyer is told that the authorization is used, and no receipt is left', async () => {
    await decide('unclaimed');
    const { state, evidence } = (await record()) ?? {};
    assert.deepEqual([state, evidence], ['refused', 'unclaimed']);
    assert.deepEqual(await receipts(), []);
    assert.deepEqual(await settleOnce(), { kind: 'spent', state: 'used' });
  });

  it('is made once, and only for an unresolved payment', async () => {
    await decide('unpaid');
    await assert.rejects(decide('paid'), /is refused: it waits for no decision/);
    await assert.rejects(decided(world.ledger, { payId: '0'.repeat(64), was: 'paid' }), /not known/);
  });

  it('reads its arguments, and refuses incomplete ones', () => {
    const id = 'a'.repeat(64);
    assert.deepEqual(readDecision(id, 'paid', HASH.toUpperCase().replace('0X', '0x')), {
      payId: id,
      was: 'paid',
      transaction: HASH,
    });
    assert.deepEqual(readDecision(id, 'unpaid', undefined), { payId: id, was: 'unpaid' });
    for (const [payId, word, hash] of [
      ['pay_1', 'paid', undefined],
      [id, undefined, undefined],
      [id, 'perhaps', undefined],
      [id, 'paid', '0x12'],
      [id, 'unpaid', HASH],
      [id, 'unclaimed', HASH],
    ] as const)
      assert.throws(() => readDecision(payId, word, hash), UsageError);
  });
});
