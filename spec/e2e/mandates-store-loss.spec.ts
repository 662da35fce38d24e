import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { FRONTS } from './mandate-fronts.ts';
import { type MandateSeller, openMandateSeller } from './mandate-seller.ts';

const INPUT = { city: 'Berlin' };
const ORDER = { resourceId: 'market_report', input: INPUT };

describe('a payment that the store forgot, for a resource that needs a mandate', () => {
  let redis: TestRedis;
  let seller: MandateSeller;
  before(async () => {
    redis = await startRedis();
    seller = await openMandateSeller([ORDER.resourceId], {}, { storage: { redis: { url: redis.url } } });
  });
  after(async () => {
    await seller?.close();
    await redis?.stop();
  });

  const forget = async (): Promise<void> => {
    const client = new Redis(redis.socketPath);
    await client.flushall();
    await client.quit();
  };
  const mandateFor = (body: Parameters<MandateSeller['mandateFor']>[0]): string =>
    seller.mandateFor(body, {
      purchase: seller.purchaseOf(ORDER.resourceId, 'Market report', INPUT, '0.01'),
      payment: true,
    }).header;

  for (const [front, send] of Object.entries(FRONTS))
    it(`is not given away without one, nor asked for again: another mandate collects it, over ${front}`, async () => {
      const asked = await send(seller.shop, ORDER);
      const proof = await seller.buyer.pay(asked.body.payment?.envelope);
      const bought = await send(seller.shop, { ...ORDER, proof, mandate: mandateFor(asked.body) });
      assert.equal(bought.code, undefined, bought.raw);
      const [before, earned] = [await seller.buyer.balance(), await seller.income()];
      await forget();
      const bare = await send(seller.shop, { ...ORDER, proof });
      assert.equal(bare.code, 'AUTHORIZATION_REQUIRED', bare.raw);
      const collected = await send(seller.shop, { ...ORDER, proof, mandate: mandateFor(bare.body) });
      assert.equal(collected.code, undefined, collected.raw);
      assert.equal((await seller.receiptOf(collected))['status'], 'Success');
      assert.deepEqual([await seller.buyer.balance(), await seller.income()], [before, earned]);
    });
});
