import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import { backendIdempotencyKey } from '../../src/payments/settlement/terms.ts';
import { inPlaceRequest } from '../support/in-place.ts';
import { fetchPaying, OFFICIAL_BUYERS } from '../support/official-buyers.ts';
import { eventsUntil, receiptWhen } from '../support/records.ts';
import { settledAfter } from '../support/settled-after.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { bring, replayed } from './bring.ts';
import { found } from './proofs.ts';

const PRICE_UNITS = 10_000n;
const CITY = { city: 'Berlin' };
const REPORT = { city: 'Berlin', currency: 'EUR', price: '12.50', volume: 340 };

/** How official clients buy: over each channel, and in place. */
const BUYERS: typeof OFFICIAL_BUYERS = {
  ...OFFICIAL_BUYERS,
  '@x402/fetch in place': (wallet, { url, resource, input }) =>
    fetchPaying(wallet, url + inPlaceRequest(resource, input).target, {}),
};

describe('a resource that is settled after its call', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: settledAfter() });
  });
  after(() => testbed.close());

  for (const [client, buy] of Object.entries(BUYERS))
    it(`is bought by ${client}: the backend answers, then the money moves`, async () => {
      const { gateway, buyer, backend } = testbed;
      const [funds, income] = [await buyer.balance(), await testbed.income()];
      backend.forget();
      const flows: unknown[] = [];
      const wallet = new x402Client((_version, accepts) => {
        flows.push(...accepts.map(({ extra }) => extra['paymentFlow']));
        return accepts[0] ?? assert.fail();
      }).register('eip155:*', new ExactEvmScheme(buyer.account));
      const order = { url: gateway.url, resource: 'market_report', input: CITY };
      const { goods } = await buy(wallet.setSpendControls(false), order);
      assert.deepEqual([flows, goods], [['authorization'], REPORT]);
      assert.equal(funds - (await buyer.balance()), PRICE_UNITS);
      assert.equal((await testbed.income()) - income, PRICE_UNITS);

      const [request, ...others] = backend.requests;
      assert.deepEqual(others, [], 'the backend is called once');
      const requestId = String(request?.headers['x-request-id']);
      const receipt = await receiptWhen(gateway, requestId, true);
      assert.deepEqual([receipt.backendStatus, receipt.payment?.amount], [200, '0.01']);
      const events = await eventsUntil(gateway, requestId, 'resource.delivered');
      assert.deepEqual(
        events.filter(({ callId }) => callId === events.at(-1)?.callId).map(({ type }) => type),
        ['resource.requested', 'payment.verified', 'backend.called', 'payment.settled', 'resource.delivered'],
      );
      assert.deepEqual(
        ['idempotency-key', 'agent-commerce-receipt', 'agent-commerce-payer'].map((name) => request?.headers[name]),
        [backendIdempotencyKey(receipt.payment?.replayKey ?? ''), receipt.id, buyer.address.toLowerCase()],
      );
    });

  it('gives the same proof its answer again, and one without the secret nothing', async () => {
    const { gateway, backend } = testbed;
    const proof = await testbed.proof('market_report', CITY);
    const first = await bring(gateway, 'market_report', CITY, { proof });
    assert.equal(first.status, 200);
    await receiptWhen(gateway, first.requestId, true);
    const income = await testbed.income();
    backend.forget();
    const again = await bring(gateway, 'market_report', CITY, { proof });
    assert.deepEqual(
      [again.status, again.bytes, again.payment?.receiptId],
      [200, first.bytes, first.payment?.receiptId],
    );
    replayed(await bring(gateway, 'market_report', CITY, { proof: found(proof) }), 'delivered');
    assert.deepEqual([await testbed.income(), backend.requests.length], [income, 0]);
  });
});
