import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { COUNTERS } from '../support/counters.ts';
import { openSeller, type Seller } from '../support/seller.ts';

const CITY = { city: 'Berlin' };

describe('the ways to buy that make run shows', () => {
  let seller: Seller;
  before(async () => {
    seller = await openSeller({ overrides: { protocols: { mcp: { enabled: true }, a2a: { enabled: true } } } });
  });
  after(() => seller?.close());

  for (const [channel, open] of COUNTERS)
    it(`over ${channel}: asked, signed, delivered, for exactly the price`, async () => {
      const counter = open(seller.shop.url);
      const earned = await seller.income();
      const terms = await counter.ask('market_report', CITY);
      assert.equal(terms.asset, seller.chain.token.address);
      const bought = await counter.pay('market_report', CITY, await seller.buyer.pay(terms.paymentRequired));
      assert.deepEqual([bought.ok, JSON.parse(bought.text).city], [true, 'Berlin']);
      assert.match(bought.transaction, /^0x[0-9a-f]{64}$/);
      assert.equal((await seller.income()) - earned, 10_000n);
    });
});
