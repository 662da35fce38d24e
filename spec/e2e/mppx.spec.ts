import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { evm, Mppx } from 'mppx/client';
import type { PrivateKeyAccount } from 'viem';
import { type Buyer, createBuyer } from '../support/buyer.ts';
import { inPlaceRequest } from '../support/in-place.ts';
import { receiptWhen } from '../support/records.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';

/** Base units that the report costs. */
const PRICE_UNITS = 10_000n;
const BERLIN = { city: 'Berlin' } as const;
const BOUGHT = { ...BERLIN, currency: 'EUR', price: '12.50', volume: 340 } as const;

/** The client of the Machine Payments Protocol: it pays an offer of x402 where it has no other. */
function clientOf(account: PrivateKeyAccount) {
  const proofs: string[] = [];
  const kept: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    const proof = request.headers.get('payment-signature');
    if (proof !== null) proofs.push(proof);
    return fetch(request);
  };
  const { fetch: pay } = Mppx.create({ methods: [evm.charge({ account })], fetch: kept, polyfill: false });
  return { pay, proofs };
}

/** Whether the resource is in catalogues or not: then a proof echoes one extension more. */
for (const bazaar of [undefined, { example: BERLIN }])
  describe(`the client of mppx buys a resource ${bazaar === undefined ? 'in no catalogue' : 'in catalogues'}`, () => {
    let testbed: Testbed;
    let buyer: Buyer;
    before(async () => {
      const report = { expose: ['http', 'origin'], ...(bazaar === undefined ? {} : { bazaar }) };
      testbed = await openTestbed({ overrides: { resources: { market_report: report } } });
      buyer = await createBuyer(testbed.chain);
    });
    after(() => testbed?.close());

    const requests = () => {
      const { url } = testbed.gateway;
      const { method, target } = inPlaceRequest('market_report', BERLIN);
      const body = JSON.stringify(BERLIN);
      const invoke = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
      return {
        'by its invoke URL': [`${url}/api/resources/market_report/invoke`, invoke],
        'in place': [`${url}${target}`, { method }],
      } as const;
    };

    for (const way of ['by its invoke URL', 'in place'] as const)
      it(`${way}: delivered with a receipt, and exactly the price moves`, async () => {
        const [funds, income] = [await buyer.balance(), await testbed.income()];
        const { pay, proofs } = clientOf(buyer.account);
        const [url, init] = requests()[way];
        const answer = await pay(url, init);
        assert.deepEqual([answer.status, await answer.json()], [200, BOUGHT]);
        assert.equal(funds - (await buyer.balance()), PRICE_UNITS);
        assert.equal((await testbed.income()) - income, PRICE_UNITS);
        const receipt = await receiptWhen(testbed.gateway, answer.headers.get('x-request-id') ?? '', true);
        assert.equal(receipt.payment?.payer, buyer.address.toLowerCase());
        assert.equal(proofs.length, 1);
        // It echoes the buyer's token, so the same request again is the same purchase.
        const [, same] = requests()[way];
        const headers = { ...('headers' in same ? same.headers : {}), 'payment-signature': proofs[0] ?? '' };
        const again = await fetch(url, { ...same, headers });
        assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
        assert.equal((await testbed.income()) - income, PRICE_UNITS);
      });

    it('is refused without funds, and no money moves whatever it signs', async () => {
      const poor = await createBuyer(testbed.chain, 0n);
      const income = await testbed.income();
      const [url, init] = requests()['in place'];
      const answer = await clientOf(poor.account).pay(url, init);
      assert.equal(answer.status, 402);
      assert.equal(await testbed.income(), income);
    });
  });
