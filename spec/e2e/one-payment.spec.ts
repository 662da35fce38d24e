import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { startRedis } from '../support/redis.ts';
import { openSeller, type Seller } from '../support/seller.ts';
import { openShop } from '../support/shop.ts';
import { SPELLINGS, spellingsOfOneAuthorization } from './proofs.ts';

const INPUT = { city: 'Berlin' };
const PRICE_UNITS = 10_000n;

describe('one authorization is one payment', () => {
  let seller: Seller;
  before(async () => {
    seller = await openSeller();
  });
  after(() => seller.close());

  it('nine spellings of one base64 text: one is accepted', async () => {
    const statuses: Record<string, number> = {};
    for (const { name, of } of SPELLINGS) {
      const proof = await seller.proof('market_report', INPUT);
      const answer = await seller.shop.invoke('market_report', INPUT, { 'payment-signature': of(proof) });
      statuses[name] = answer.status;
      await answer.arrayBuffer();
    }
    assert.deepEqual(statuses, Object.fromEntries(SPELLINGS.map(({ name, accepted }) => [name, accepted ? 200 : 402])));
  });

  it('twenty spellings of one signature in parallel: one settlement, one call to the merchant', async () => {
    const before = await seller.income();
    seller.merchant.forget();
    const spellings = spellingsOfOneAuthorization(await seller.proof('market_report', INPUT));
    assert.equal(new Set(spellings).size, 20);
    const answers = await Promise.all(
      spellings.map((proof) => seller.shop.invoke('market_report', INPUT, { 'payment-signature': proof })),
    );
    const counts = new Map<number, number>();
    for (const answer of answers) {
      counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
      await answer.arrayBuffer();
    }
    assert.equal((await seller.income()) - before, PRICE_UNITS);
    assert.equal(seller.merchant.requests.length, 1);
    assert.deepEqual(Object.fromEntries(counts), { 200: 1, 409: 19 });
  });
});

describe('two gateways over one Redis', () => {
  it('twenty spellings of one authorization, half to each: one settlement, one call to the merchant', async () => {
    const redis = await startRedis();
    const storage = { redis: { url: redis.url } };
    const payTo = privateKeyToAddress(generatePrivateKey());
    const first = await openSeller({ storage, payTo });
    const facilitator = { mode: 'local' } as const;
    const second = await openShop({ chain: first.chain, merchantUrl: first.merchant.url, facilitator, storage, payTo });
    try {
      const spellings = spellingsOfOneAuthorization(await first.proof('market_report', INPUT));
      const answers = await Promise.all(
        spellings.map((proof, at) =>
          (at % 2 === 0 ? first.shop : second).invoke('market_report', INPUT, { 'payment-signature': proof }),
        ),
      );
      const statuses = answers.map(({ status }) => status).sort();
      for (const answer of answers) await answer.arrayBuffer();
      assert.deepEqual(statuses, [200, ...Array<number>(19).fill(409)]);
      assert.equal(await first.income(), PRICE_UNITS);
      assert.equal(first.merchant.requests.length, 1);
    } finally {
      await second.close();
      await first.close();
      await redis.stop();
    }
  });
});
