import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { UnpaidRow } from '../../src/payments/ledger/unpaid.ts';
import { createUnpaidWork, type Place } from '../../src/payments/settlement/unpaid-work.ts';
import { redisBed } from './redis-bed.ts';

const LIMITS = { perResource: 2, perNetwork: 50, all: 50, windowMs: 60_000 };
const ROW: UnpaidRow = {
  ...{
    at: '2026-01-01T00:00:00.000Z',
    requestId: 'one',
    callId: 'call_one',
    resourceId: 'lookup',
    channel: 'http',
    amount: '0.01',
  },
  ...{
    currency: 'USD',
    network: 'eip155:1',
    payer: '0xab',
    replayKey: 'pay',
    backendStatus: 404,
    reason: 'backend_4xx',
  },
};

const bed = redisBed();

describe('the budget of unpaid work, shared by the gateways of one store', () => {
  const gateway = () => createUnpaidWork(() => LIMITS, undefined, bed.store.work ?? assert.fail('shared'));
  let calls = 0;
  const callOf = (resourceId: string, payer = `0x${calls}`) => {
    calls += 1;
    return { payId: `pay ${calls}`, payer, resourceId, network: 'one', atMostMs: 60_000 };
  };
  const placed = async (entered: Promise<Place | string>): Promise<Place> => {
    const place = await entered;
    return typeof place === 'string' ? assert.fail(place) : place;
  };
  const until = async (holds: () => Promise<boolean>): Promise<void> => {
    while (!(await holds())) await new Promise(setImmediate);
  };
  const running = (holder: string) => bed.redis.zcard(`{acg:shop}:work:run:${holder}`);

  it('a gateway that died keeps no payer from the others', async () => {
    await placed(gateway().enter(callOf('report', '0xAB')));
    (await placed(gateway().enter(callOf('report', '0xab')))).leave('settled');
  });

  it('what ended unpaid at one gateway is spent at all, is listed at all, and comes free where any learns that it is paid', async () => {
    const [one, other] = [gateway(), gateway()];
    const failed = await placed(one.enter(callOf('lookup', '0xfa')));
    const call = callOf('lookup');
    (await placed(one.enter(call))).leave('unpaid');
    failed.leave({ ...ROW });
    await until(async () => (await running('resource lookup')) === 0);
    assert.equal(await other.enter(callOf('lookup')), 'exhausted');
    assert.deepEqual([other.exhausted('lookup', 'one'), other.exhausted('report', 'one')], [true, false]);
    assert.deepEqual(await other.failed(10), [ROW]);
    (await placed(other.enter(callOf('report', '0xfa')))).leave('settled');
    other.paid(call.payId);
    await until(async () => (await bed.redis.zcard('{acg:shop}:work:unpaid:resource lookup')) === 1);
    await placed(one.enter(callOf('lookup')));
  });

  it('places and unpaid calls end by themselves, and a dead gateway keeps none', async () => {
    await placed(gateway().enter({ ...callOf('brief'), atMostMs: 1 }));
    await placed(gateway().enter({ ...callOf('brief'), atMostMs: 1 }));
    (await placed(gateway().enter(callOf('brief')))).leave('settled');
    for (const key of await bed.redis.keys('{acg:shop}:work:*')) assert.ok((await bed.redis.pttl(key)) > 0, key);
  });
});
