import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { BUYING_CHANNELS } from '../support/buying-channels.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';

const CITY = { city: 'Berlin' };

describe('the ways to buy that make run shows', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: { protocols: { mcp: { enabled: true }, a2a: { enabled: true } } } });
  });
  after(() => testbed?.close());

  for (const [channel, open] of BUYING_CHANNELS)
    it(`over ${channel}: asked, signed, delivered, for exactly the price`, async () => {
      const way = open(testbed.gateway.url);
      const earned = await testbed.income();
      const terms = await way.ask('market_report', CITY);
      assert.equal(terms.asset, testbed.chain.token.address);
      const bought = await way.pay('market_report', CITY, await testbed.buyer.pay(terms.paymentRequired));
      assert.deepEqual([bought.ok, JSON.parse(bought.text).city], [true, 'Berlin']);
      assert.match(bought.transaction, /^0x[0-9a-f]{64}$/);
      assert.equal((await testbed.income()) - earned, 10_000n);
    });
});
