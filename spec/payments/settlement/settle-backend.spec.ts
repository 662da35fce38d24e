import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SettlementResult } from '../../../src/payments/settlement/settlement-request.ts';
import { StoreError } from '../../../src/store/port/store-error.ts';
import { PAID } from './scripted-rail.ts';
import { worldOfEachTest } from './world.ts';

describe('the connection to the backend before the money', () => {
  const world = worldOfEachTest();
  const { settleOnce, record, receipts, types, broken } = world;

  it('cannot be had: nothing is settled, kept or recorded, and the same proof pays later', async () => {
    world.reachable = false;
    const { cause: _cause, ...result } = (await settleOnce()) as Extract<SettlementResult, { kind: 'postponed' }>;
    assert.deepEqual(result, { kind: 'postponed', reason: 'backend_unreachable' });
    assert.deepEqual(world.peer.names(), ['verify']);
    assert.equal(await record(), undefined);
    assert.deepEqual([await types(), await receipts(), world.held.size], [[], [], 0]);
    world.reachable = true;
    assert.equal((await settleOnce()).kind, 'paid');
  });

  it('is held after the rail verified and before anything is written that another process could settle', async () => {
    const seen: string[] = [];
    const reserveBackend = async () => {
      seen.push(`${world.peer.names().join()} ${(await record())?.state}`);
      return world.reserveBackend();
    };
    world.peer.script.settle = async () => {
      seen.push(`${(await record())?.state} with ${world.connections}`);
      return PAID;
    };
    assert.equal((await settleOnce({ reserveBackend })).kind, 'paid');
    assert.deepEqual(seen, ['verify undefined', 'settling with 1']);
  });

  it('goes with the payment, for its delivery', async () => {
    const result = await settleOnce();
    assert.ok(result.kind === 'paid' && result.held !== undefined);
    assert.equal(world.connections, 1);
    result.held.release();
    assert.equal(world.connections, 0);
  });

  for (const [why, prepare] of [
    [
      'the rail refuses after all',
      () => (world.peer.script.settle = async () => ({ kind: 'refused', reason: 'no', evidence: 'unsent' })),
    ],
    [
      'the end is uncertain',
      () => (world.peer.script.settle = async () => ({ kind: 'uncertain', cause: 'no answer' })),
    ],
    ['the rail throws', () => (world.peer.script.settle = () => Promise.reject(new Error('bug')))],
  ] as const)
    it(`is given back: ${why}`, async () => {
      prepare();
      assert.notEqual((await settleOnce()).kind, 'paid');
      assert.equal(world.connections, 0);
    });

  it('is given back: the gate closes, and the store is away', async () => {
    const reserveBackend = () => {
      world.gateOpen = false;
      return world.reserveBackend();
    };
    assert.equal((await settleOnce({ reserveBackend })).kind, 'gate_closed');
    world.gateOpen = true;
    await assert.rejects(settleOnce({}, broken({ reserve: world.away })), StoreError);
    assert.equal(world.connections, 0);
  });

  it('cannot be had when a withdrawn payment begins anew: it stays withdrawn, for the same proof', async () => {
    world.peer.script.settle = async () => ({ kind: 'withdrawn', reason: 'relayer_unfunded', cause: 'no gas' });
    assert.equal((await settleOnce()).kind, 'postponed');
    assert.equal(world.connections, 0);
    world.reachable = false;
    world.peer.script.settle = async () => PAID;
    const result = await settleOnce();
    assert.ok(result.kind === 'postponed' && result.reason === 'backend_unreachable');
    assert.equal((await record())?.state, 'withdrawn');
    world.reachable = true;
    assert.equal((await settleOnce()).kind, 'paid');
  });

  it('is not needed for what was paid before', async () => {
    const result = await settleOnce();
    assert.ok(result.kind === 'paid');
    result.held?.release();
    world.reachable = false;
    await world.recorder().undelivered(result.record, {
      ...world.facts(result),
      failure: { code: 'backend_status_500' },
      requestWritten: false,
      repeatable: true,
    });
    const collected = await settleOnce();
    assert.ok(collected.kind === 'paid' && collected.held === undefined);
  });
});
