import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { StoreError } from '../../../src/store/port/store.ts';
import { PAID } from './scripted-rail.ts';
import { tillOfEachTest } from './till.ts';

/** The store says that it certainly wrote nothing. */
const away = async (): Promise<never> => {
  throw new StoreError(new Error('no connection'), false);
};

describe('the merchant before the money', () => {
  const till = tillOfEachTest();
  const { take, record, receipts, types, broken } = till;

  it('cannot be reached: nothing is settled, kept or told, and the same proof pays when he is back', async () => {
    till.reachable = false;
    const { cause: _cause, ...sale } = (await take()) as Extract<SettlementResult, { kind: 'postponed' }>;
    assert.deepEqual(sale, { kind: 'postponed', reason: 'backend_unreachable' });
    assert.deepEqual(till.peer.names(), ['verify']);
    assert.equal(await record(), undefined);
    assert.deepEqual([await types(), await receipts(), till.held.size], [[], [], 0]);
    till.reachable = true;
    assert.equal((await take()).kind, 'paid');
  });

  it('is asked when the rail has said yes and before anything is written that another process could settle', async () => {
    const seen: string[] = [];
    const reserveBackend = async () => {
      seen.push(`${till.peer.names().join()} ${(await record())?.state}`);
      return till.reserveBackend();
    };
    till.peer.script.settle = async () => {
      seen.push(`${(await record())?.state} with ${till.connections}`);
      return PAID;
    };
    assert.equal((await take({ reserveBackend })).kind, 'paid');
    assert.deepEqual(seen, ['verify reserved', 'settling with 1']);
  });

  it('his connection goes with the payment, for its delivery', async () => {
    const sale = await take();
    assert.ok(sale.kind === 'paid' && sale.held !== undefined);
    assert.equal(till.connections, 1);
    sale.held.release();
    assert.equal(till.connections, 0);
  });

  for (const [why, prepare] of [
    [
      'the rail refuses after all',
      () => (till.peer.script.settle = async () => ({ kind: 'refused', reason: 'no', evidence: 'unsent' })),
    ],
    ['the end is uncertain', () => (till.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'no answer' }))],
    ['the rail throws', () => (till.peer.script.settle = () => Promise.reject(new Error('bug')))],
  ] as const)
    it(`his connection is given back: ${why}`, async () => {
      prepare();
      assert.notEqual((await take()).kind, 'paid');
      assert.equal(till.connections, 0);
    });

  it('his connection is given back: the gate closes, and the store is away', async () => {
    const reserveBackend = () => {
      till.gateOpen = false;
      return till.reserveBackend();
    };
    assert.equal((await take({ reserveBackend })).kind, 'gate_closed');
    till.gateOpen = true;
    await assert.rejects(take({}, broken({ advance: away })), StoreError);
    assert.equal(till.connections, 0);
  });

  it('cannot be reached when a withdrawn payment begins anew: it stays withdrawn, for the same proof', async () => {
    till.peer.script.settle = async () => ({ kind: 'withdrawn', cause: 'no gas' });
    assert.equal((await take()).kind, 'postponed');
    assert.equal(till.connections, 0);
    till.reachable = false;
    till.peer.script.settle = async () => PAID;
    const sale = await take();
    assert.ok(sale.kind === 'postponed' && sale.reason === 'backend_unreachable');
    assert.equal((await record())?.state, 'withdrawn');
    till.reachable = true;
    assert.equal((await take()).kind, 'paid');
  });

  it('is not asked for what was paid before', async () => {
    const sale = await take();
    assert.ok(sale.kind === 'paid');
    sale.held?.release();
    till.reachable = false;
    await till.desk().undelivered(sale.record, {
      ...till.facts(sale),
      failure: 'BACKEND_ERROR',
      requestWritten: false,
      repeatable: true,
    });
    const collected = await take();
    assert.ok(collected.kind === 'paid' && collected.held === undefined);
  });
});
