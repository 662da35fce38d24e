import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { RailVerdict, Reading } from '../../../src/payments/rail.ts';
import { joining } from '../../../src/payments/settlement/join.ts';
import type { Settler } from '../../../src/payments/settlement/settle.ts';
import type { SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { PAYER_SETTLEMENTS, SLOT_WAIT_MS } from '../../../src/payments/settlement/slots.ts';
import { PAID } from './scripted-rail.ts';
import { freshTerms, tillOfEachTest } from './till.ts';
import { rest, type VirtualTime, virtualTime } from './virtual-time.ts';

describe('a payer with as many settlements under way as one may have', () => {
  const till = tillOfEachTest();
  const { order, pay, later } = till;
  let time: VirtualTime;
  let settler: Settler;
  let answer: PromiseWithResolvers<RailVerdict>;
  let first: readonly Promise<SettlementResult>[];

  beforeEach(async () => {
    time = virtualTime();
    Object.assign(till, { time });
    settler = till.settler();
    answer = Promise.withResolvers<RailVerdict>();
    till.peer.script.verify = () => answer.promise;
  });
  const fillUp = async (): Promise<void> => {
    first = Array.from({ length: PAYER_SETTLEMENTS }, () => settler.settle(order({ terms: freshTerms() })));
    await rest();
    assert.equal(till.peer.names().length, PAYER_SETTLEMENTS);
  };
  const finish = async (): Promise<void> => {
    answer.resolve({ kind: 'valid' });
    await Promise.all(first);
  };

  it('is told to come again, and nothing was asked, sent or kept; the same proof then buys', async () => {
    await fillUp();
    const sale = settler.settle(order());
    await rest();
    assert.equal(await till.state(), 'reserved');
    await time.pass(SLOT_WAIT_MS);
    assert.equal((await sale).kind, 'crowded');
    assert.deepEqual([await till.state(), till.peer.names().length], [undefined, PAYER_SETTLEMENTS]);
    await finish();
    assert.equal((await settler.settle(order())).kind, 'paid');
  });

  it('is served when a settlement ends in time', async () => {
    await fillUp();
    const sale = settler.settle(order());
    await time.pass(SLOT_WAIT_MS - 1);
    await finish();
    assert.equal((await sale).kind, 'paid');
  });

  it('others buy meanwhile', async () => {
    await fillUp();
    till.peer.script.verify = async () => ({ kind: 'valid' });
    const other = { ...freshTerms(), payer: `0x${'9'.repeat(40)}` };
    assert.equal((await settler.settle(order({ terms: other }))).kind, 'paid');
    await finish();
  });

  it('has places for copies of one proof as for one', async () => {
    const copies = joining(settler, till.ledger, time);
    const same = Array.from({ length: 3 * PAYER_SETTLEMENTS }, () => copies.settle(order()));
    await rest();
    assert.deepEqual(till.peer.names(), ['verify']);
    first = [settler.settle(order({ terms: freshTerms() }))];
    await rest();
    assert.equal(till.peer.names().length, 2, 'another purchase has room');
    await finish();
    await time.pass(SLOT_WAIT_MS);
    assert.ok((await Promise.all(same)).every(({ kind }) => kind === 'paid' || kind === 'in_flight'));
  });

  it('collects what was paid and not delivered all the same', async () => {
    till.peer.script.verify = async () => ({ kind: 'valid' });
    const sale = await pay();
    await till.desk().undelivered(sale.record, {
      ...till.facts(sale, { backendStatus: 0 }),
      ...{ failure: 'BACKEND_ERROR', requestWritten: true, repeatable: true },
    });
    const asked = till.peer.names().length;
    till.peer.script.verify = () => answer.promise;
    first = Array.from({ length: PAYER_SETTLEMENTS }, () => settler.settle(order({ terms: freshTerms() })));
    await rest();
    assert.equal((await settler.settle(order())).kind, 'paid');
    assert.equal(till.peer.names().length, asked + PAYER_SETTLEMENTS);
    await finish();
  });

  const readings: readonly (readonly [what: string, reading: Reading, sale: SettlementResult['kind']])[] = [
    ['shown by the chain is answered', PAID, 'paid'],
    ['still open stays open, and nothing is sent', { kind: 'open' }, 'uncertain'],
  ];
  for (const [what, reading, expected] of readings)
    it(`an earlier settlement ${what}`, async () => {
      till.peer.script.verify = async () => ({ kind: 'valid' });
      till.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'slow' });
      assert.equal((await settler.settle(order())).kind, 'uncertain');
      later(10_000);
      till.peer.script.verify = () => answer.promise;
      till.peer.script.reconcile = async () => reading;
      first = Array.from({ length: PAYER_SETTLEMENTS }, () => settler.settle(order({ terms: freshTerms() })));
      await rest();
      const settles = till.peer.names().filter((name) => name === 'settle').length;
      const sale = settler.settle(order());
      await time.pass(SLOT_WAIT_MS);
      assert.equal((await sale).kind, expected);
      assert.equal(till.peer.names().filter((name) => name === 'settle').length, settles);
      await finish();
    });
});
