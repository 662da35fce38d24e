import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { RailVerdict, Reading } from '../../../src/payments/rail.ts';
import { joining } from '../../../src/payments/settlement/join.ts';
import type { Settler } from '../../../src/payments/settlement/settle.ts';
import { PAYER_SETTLEMENTS, SLOT_WAIT_MS } from '../../../src/payments/settlement/settle.ts';
import type { SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { PAID } from './scripted-rail.ts';
import { rest, type VirtualTime, virtualTime } from './virtual-time.ts';
import { freshTerms, worldOfEachTest } from './world.ts';

describe('a payer at its bound of settlements under way', () => {
  const world = worldOfEachTest();
  const { requestWith, pay, later } = world;
  let time: VirtualTime;
  let settler: Settler;
  let answer: PromiseWithResolvers<RailVerdict>;
  let first: readonly Promise<SettlementResult>[];

  beforeEach(async () => {
    time = virtualTime();
    Object.assign(world, { time });
    settler = world.settler();
    answer = Promise.withResolvers<RailVerdict>();
    world.terms = { ...freshTerms(), payer: `0x${'A'.repeat(40)}` };
    world.peer.script.verify = () => answer.promise;
  });
  /** The payer is spelled otherwise. */
  const ofSamePayer = () => ({ ...freshTerms(), payer: `0x${'a'.repeat(40)}` });
  const fillUp = async (): Promise<void> => {
    first = Array.from({ length: PAYER_SETTLEMENTS }, () => settler.settle(requestWith({ terms: ofSamePayer() })));
    await rest();
    assert.equal(world.peer.names().length, PAYER_SETTLEMENTS);
  };
  const finish = async (): Promise<void> => {
    answer.resolve({ kind: 'valid' });
    await Promise.all(first);
  };

  it('is crowded, and nothing was asked, sent or kept; the same proof then buys', async () => {
    await fillUp();
    const result = settler.settle(requestWith());
    await rest();
    assert.equal(await world.state(), 'reserved');
    await time.pass(SLOT_WAIT_MS);
    assert.equal((await result).kind, 'crowded');
    assert.deepEqual([await world.state(), world.peer.names().length], [undefined, PAYER_SETTLEMENTS]);
    await finish();
    assert.equal((await settler.settle(requestWith())).kind, 'paid');
  });

  it('is served when a settlement ends in time', async () => {
    await fillUp();
    const result = settler.settle(requestWith());
    await time.pass(SLOT_WAIT_MS - 1);
    await finish();
    assert.equal((await result).kind, 'paid');
  });

  it('others buy meanwhile', async () => {
    await fillUp();
    world.peer.script.verify = async () => ({ kind: 'valid' });
    const other = { ...freshTerms(), payer: `0x${'9'.repeat(40)}` };
    assert.equal((await settler.settle(requestWith({ terms: other }))).kind, 'paid');
    await finish();
  });

  it('needs one slot for all copies of a proof', async () => {
    const copies = joining(settler, world.ledger, time);
    const same = Array.from({ length: 3 * PAYER_SETTLEMENTS }, () => copies.settle(requestWith()));
    await rest();
    assert.deepEqual(world.peer.names(), ['verify']);
    first = [settler.settle(requestWith({ terms: freshTerms() }))];
    await rest();
    assert.equal(world.peer.names().length, 2, 'another purchase has room');
    await finish();
    await time.pass(SLOT_WAIT_MS);
    assert.ok((await Promise.all(same)).every(({ kind }) => kind === 'paid' || kind === 'in_flight'));
  });

  it('collects what was paid and not delivered all the same', async () => {
    world.peer.script.verify = async () => ({ kind: 'valid' });
    const result = await pay();
    await world.failDelivery(result, { backendStatus: 0 });
    const asked = world.peer.names().length;
    world.peer.script.verify = () => answer.promise;
    first = Array.from({ length: PAYER_SETTLEMENTS }, () => settler.settle(requestWith({ terms: ofSamePayer() })));
    await rest();
    assert.equal((await settler.settle(requestWith())).kind, 'paid');
    assert.equal(world.peer.names().length, asked + PAYER_SETTLEMENTS);
    await finish();
  });

  const readings: readonly (readonly [what: string, reading: Reading, result: SettlementResult['kind']])[] = [
    ['shown by the chain is answered', PAID, 'paid'],
    ['still open stays open, and nothing is sent', { kind: 'open' }, 'uncertain'],
  ];
  for (const [what, reading, expected] of readings)
    it(`an earlier settlement ${what}`, async () => {
      world.peer.script.verify = async () => ({ kind: 'valid' });
      world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'slow' });
      assert.equal((await settler.settle(requestWith())).kind, 'uncertain');
      later(10_000);
      world.peer.script.verify = () => answer.promise;
      world.peer.script.reconcile = async () => reading;
      first = Array.from({ length: PAYER_SETTLEMENTS }, () => settler.settle(requestWith({ terms: ofSamePayer() })));
      await rest();
      const settles = world.peer.names().filter((name) => name === 'settle').length;
      const result = settler.settle(requestWith());
      await time.pass(SLOT_WAIT_MS);
      assert.equal((await result).kind, expected);
      assert.equal(world.peer.names().filter((name) => name === 'settle').length, settles);
      await finish();
    });
});
