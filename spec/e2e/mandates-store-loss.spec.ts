import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { VERSION_LENGTH } from '../../src/store/port/commit.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { type Body, CHANNELS, type Reply, type Send } from './mandate-channels.ts';
import { type MandateSeller, now, openMandateSeller } from './mandate-seller.ts';

const INPUT = { city: 'Berlin' };
const PURCHASE = { resourceId: 'market_report', input: INPUT };
const FREE = { resourceId: 'free_market_report', input: INPUT };
const RESOURCES = [PURCHASE.resourceId, FREE.resourceId];
/** Longest wait for a purchase after a loss: a check of the store finds it, milliseconds. */
const SOON_MS = 5_000;

let redis: TestRedis;
let testbed: MandateSeller;
before(async () => {
  redis = await startRedis();
  testbed = await openMandateSeller(RESOURCES, {}, { storage: { redis: { url: redis.url } } });
});
after(async () => {
  await testbed?.close();
  await redis?.stop();
});

const onRedis = async (act: (client: Redis) => Promise<unknown>): Promise<void> => {
  const client = new Redis(redis.socketPath);
  await act(client);
  await client.quit();
};
const forget = () => onRedis((client) => client.flushall());
/** Makes the gateway accept open mandates from before a loss, as an operator may. */
const accept = () =>
  onRedis(async (client) => {
    const key = `{acg:${testbed.gateway.config.merchant.id}}:ap2:epoch`;
    const { born } = JSON.parse(((await client.get(key)) ?? assert.fail('no epoch')).slice(VERSION_LENGTH));
    await client.set(key, 'accepted'.padEnd(VERSION_LENGTH) + JSON.stringify({ born, openFrom: 0 }));
  });
const report = () => testbed.purchaseOf(PURCHASE.resourceId, 'Market report', INPUT, '0.01');
/**
 * Signed by the user for this very purchase, and now; an open mandate would be from before the
 * loss.
 */
const direct = (body: Body, purchase = report()): string => {
  const { checkoutJwt } = body.authorization?.required[0] ?? assert.fail(`no challenge: ${JSON.stringify(body)}`);
  const payment = purchase.payment !== undefined;
  return testbed.mint.direct({ now: now(), profile: testbed.profile, checkoutJwt, purchase, payment }).header;
};
const reasonOf = ({ code, body }: Reply) => [code, body.details?.['reason']];

describe('a payment that the store lost, for a resource that needs a mandate', () => {
  for (const [channel, send] of Object.entries(CHANNELS))
    it(`is not delivered without one, nor charged again: another mandate collects it, over ${channel}`, async () => {
      const asked = await send(testbed.gateway, PURCHASE);
      const proof = await testbed.buyer.pay(asked.body.payment?.envelope);
      const bought = await send(testbed.gateway, { ...PURCHASE, proof, mandate: direct(asked.body) });
      assert.equal(bought.code, undefined, bought.raw);
      const [before, earned] = [await testbed.buyer.balance(), await testbed.income()];
      await forget();
      const bare = await send(testbed.gateway, { ...PURCHASE, proof });
      assert.equal(bare.code, 'AUTHORIZATION_REQUIRED', bare.raw);
      const collected = await soon(send, bare, (body) => ({ ...PURCHASE, proof, mandate: direct(body) }));
      assert.equal((await testbed.receiptOf(collected))['status'], 'Success');
      assert.deepEqual([await testbed.buyer.balance(), await testbed.income()], [before, earned]);
    });
});

describe('a mandate that the store lost', () => {
  for (const [channel, send] of Object.entries(CHANNELS)) {
    it(`is refused with a fresh payment, which one for a fresh checkout may use at once, over ${channel}`, async () => {
      const asked = await send(testbed.gateway, PURCHASE);
      const mandate = direct(asked.body);
      const used = await send(testbed.gateway, { ...PURCHASE, proof: await paid(asked), mandate });
      assert.equal(used.code, undefined, used.raw);
      await forget();
      const earned = await testbed.income();
      const proof = await paid(asked);
      const refused = await send(testbed.gateway, { ...PURCHASE, proof, mandate });
      assert.deepEqual(reasonOf(refused), ['AUTHORIZATION_REPLAYED', 'replayed'], refused.raw);
      assert.equal(await testbed.income(), earned, 'nothing was paid');
      await soon(send, refused, (body) => ({ ...PURCHASE, proof, mandate: direct(body) }));
      const again = await send(testbed.gateway, { ...PURCHASE, proof: await paid(asked), mandate });
      assert.deepEqual(reasonOf(again), ['AUTHORIZATION_REPLAYED', 'replayed'], again.raw);
    });
  }

  it('is refused under a fresh checkout as well when it is open, the log states why, and the operator may accept it', async () => {
    const send = CHANNELS.http;
    await accept();
    const asked = await send(testbed.gateway, PURCHASE);
    const wishes = { purchase: report(), payment: true, now: now(), profile: testbed.profile };
    const open = testbed.mint.open(wishes);
    const closed = ({ authorization }: Body): string => {
      const { checkoutJwt } = authorization?.required[0] ?? assert.fail('no challenge');
      return testbed.mint.close(open, { ...wishes, now: now(), checkoutJwt }).header;
    };
    const used = await send(testbed.gateway, { ...PURCHASE, proof: await paid(asked), mandate: closed(asked.body) });
    assert.equal(used.code, undefined, used.raw);
    await forget();
    await testbed.gateway.store.check();
    const fresh = await send(testbed.gateway, PURCHASE);
    const refused = await send(testbed.gateway, { ...PURCHASE, proof: await paid(fresh), mandate: closed(fresh.body) });
    assert.deepEqual(reasonOf(refused), ['AUTHORIZATION_REPLAYED', 'open_mandate_spent'], refused.raw);
    assert.ok(testbed.gateway.logLines.some((line) => line.includes('the store lost its data')));
    await accept();
    const taken = await send(testbed.gateway, { ...PURCHASE, proof: await paid(fresh), mandate: closed(refused.body) });
    assert.equal(taken.code, undefined, taken.raw);
  });
});

function paid({ body }: Reply): Promise<string> {
  return testbed.buyer.pay(body.payment?.envelope ?? assert.fail('no offer'));
}

/**
 * Makes a mandate for each challenge until one is accepted: the first may be from before the loss
 * was found, or from that millisecond.
 */
async function soon(send: Send, first: Reply, call: (body: Body) => Parameters<Send>[1]): Promise<Reply> {
  const start = performance.now();
  let answer = await send(testbed.gateway, call(first.body));
  while (answer.code === 'AUTHORIZATION_REPLAYED' && performance.now() - start < SOON_MS)
    answer = await send(testbed.gateway, call(answer.body));
  assert.equal(answer.code, undefined, answer.raw);
  return answer;
}
