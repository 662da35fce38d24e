import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { changeDocument, documentAt } from '../support/documents.ts';
import { type Facilitator, startFacilitator } from '../support/facilitator.ts';
import { type HostileFacilitator, relayTo, startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { type ReplicatedRedis, startReplicatedRedis, until } from '../support/redis-replicas.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';

const RESOURCE = 'market_report';
const INPUT = { city: 'Zurich' };
const PRICE_UNITS = 10_000n;

let group: ReplicatedRedis;
let official: Facilitator;
/** The official one, with a record of its calls. */
let facilitator: HostileFacilitator;
let testbed: Testbed;

before(async () => {
  group = await startReplicatedRedis(2);
  testbed = await openTestbed(async (chain) => {
    official = await startFacilitator(chain);
    facilitator = await startHostileFacilitator(`eip155:${chain.chainId}`);
    const relay = relayTo(official.url);
    facilitator.script({ verify: relay, settle: relay, supported: relay });
    const { url } = group.primary.server;
    return {
      facilitator: { mode: 'remote', url: facilitator.url },
      storage: { redis: { url } },
      overrides: { storage: { redis: { replicas: 2 } } },
    };
  });
});
after(async () => {
  await testbed?.close();
  await facilitator?.stop();
  await official?.stop();
  await group?.stop();
});

const settleCalls = () => facilitator.calls.filter(({ path }) => path === '/settle').length;

describe('a gateway whose store keeps two replicas', () => {
  it('sends nothing to the facilitator while no replica has the record, and settles again as soon as one has', async () => {
    const { gateway } = testbed;
    const proof = await testbed.proof(RESOURCE, INPUT);
    const pay = () => gateway.invoke(RESOURCE, INPUT, { 'payment-signature': proof });
    group.cutOff();
    const refused = await pay();
    const body = (await refused.json()) as { readonly code?: string; readonly details?: object };
    // The write stands on the primary, so another process may go on with it: an answer of "nothing
    // moved" would be wrong.
    assert.equal(refused.status, 502, JSON.stringify(body));
    assert.equal(body.code, 'PAYMENT_SETTLEMENT_FAILED');
    assert.deepEqual(body.details, { settlementUncertain: true });
    assert.equal(settleCalls(), 0);

    // The reconciler takes the record over, as if the lease had ended by itself, and must not send
    // it either.
    const { admin } = group.primary;
    const [key = ''] = await admin.keys('*:pay:*');
    const payId = key.slice(key.lastIndexOf(':') + 1);
    assert.equal((await documentAt(admin, key))?.['state'], 'settling');
    const endLease = async () => {
      await changeDocument(admin, key, { leaseUntil: 1, dueAt: 1 });
      await admin.zadd(key.replace(/pay:.*$/, 'open'), 1, payId);
    };
    await endLease();
    await until(async () => Number((await documentAt(admin, key))?.['fence']) > 1, 'no process took the record over');
    await endLease();
    await until(
      async () => Number((await documentAt(admin, key))?.['fence']) > 2,
      'no process took the record over again',
    );
    assert.equal(settleCalls(), 0);
    assert.equal(await testbed.income(), 0n);

    await group.reach();
    await endLease();
    let answer = await pay();
    await until(async () => {
      if (answer.status === 200) return true;
      answer = await pay();
      return false;
    }, 'the proof was never taken');
    assert.equal(answer.status, 200);
    // The reconciler and the buyer may both take over the lease that ended here; money moves once.
    assert.ok(settleCalls() >= 1);
    assert.equal(await testbed.income(), PRICE_UNITS);
  });
});
