import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { backendIdempotencyKey } from '../../src/payments/settlement/terms.ts';
import { dataOf, message, send, x402Of } from '../adapters/a2a/post.ts';
import { inPlaceRequest } from '../support/in-place.ts';
import { CLIENT_MODES } from '../support/mcp-clients.ts';
import { buyTool } from '../support/mcp-payer.ts';
import { eventsUntil, receiptWhen } from '../support/records.ts';
import { settledAfter } from '../support/settled-after.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { bring, replayed } from './bring.ts';
import { decode, found } from './proofs.ts';

const PRICE_UNITS = 10_000n;
const CITY = { city: 'Berlin' };
const REPORT = { city: 'Berlin', currency: 'EUR', price: '12.50', volume: 340 };

/** The offer of a 402 and the answer to its payment. */
interface Bought {
  readonly accepts: readonly { readonly extra: object }[];
  readonly answer: unknown;
}

/** How the official clients buy the market report over each channel. */
const PURCHASES: Readonly<Record<string, (testbed: Testbed, requestId: string) => Promise<Bought>>> = {
  http: async ({ gateway, buyer, quote }, requestId) => {
    const { body } = await quote('market_report', CITY);
    const answer = await buyer.fetch(`${gateway.url}/api/resources/market_report/invoke`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-request-id': requestId },
      body: JSON.stringify(CITY),
    });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('idempotency-replayed'), null, 'it is no copy of an earlier answer');
    return { accepts: body.payment.accepts as Bought['accepts'], answer: await answer.json() };
  },
  origin: async ({ gateway, buyer }, requestId) => {
    const { target } = inPlaceRequest('market_report', CITY);
    const asked = (await (await fetch(`${gateway.url}${target}`)).json()) as { readonly payment: Bought };
    const answer = await buyer.fetch(`${gateway.url}${target}`, { headers: { 'x-request-id': requestId } });
    assert.equal(answer.status, 200);
    return { accepts: asked.payment.accepts, answer: await answer.json() };
  },
  mcp: async ({ gateway, buyer }, requestId) => {
    const mode = CLIENT_MODES['the 2.x client'];
    const client = await mode?.connect(`${gateway.url}/mcp`, (url, init) => {
      const headers = new Headers(init?.headers);
      headers.set('x-request-id', requestId);
      return fetch(url, { ...init, headers });
    });
    assert.ok(client !== undefined);
    const { terms, answer } = await buyTool(client, buyer.client, { name: 'market_report', arguments: CITY });
    await client.close();
    return { accepts: terms.accepts, answer: answer.structuredContent };
  },
  a2a: async ({ gateway, buyer }, requestId) => {
    const asked = await send(gateway.url, message('market_report', CITY));
    const terms = x402Of(asked)['x402.payment.required'] as Bought;
    const metadata = { 'x402.payment.payload': decode(await buyer.pay(terms)) };
    const paid = await send(gateway.url, message('market_report', CITY, { metadata }), { 'x-request-id': requestId });
    assert.equal(paid.status.state, 'TASK_STATE_COMPLETED');
    return { accepts: terms.accepts, answer: dataOf(paid) };
  },
};

describe('a resource that is settled after its call', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: settledAfter() });
  });
  after(() => testbed.close());

  for (const [channel, purchase] of Object.entries(PURCHASES))
    it(`is bought over ${channel} by an official client: the backend answers, then the money moves`, async () => {
      const { gateway, buyer, backend } = testbed;
      const [funds, income] = [await buyer.balance(), await testbed.income()];
      backend.forget();
      const requestId = `after-${channel}-${randomUUID()}`;
      const { accepts, answer } = await purchase(testbed, requestId);
      assert.deepEqual(
        accepts.map(({ extra }) => (extra as { paymentFlow?: string }).paymentFlow),
        ['authorization'],
      );
      assert.deepEqual(answer, REPORT);
      assert.equal(funds - (await buyer.balance()), PRICE_UNITS);
      assert.equal((await testbed.income()) - income, PRICE_UNITS);

      const receipt = await receiptWhen(gateway, requestId, true);
      assert.deepEqual([receipt.backendStatus, receipt.payment?.amount], [200, '0.01']);
      const events = await eventsUntil(gateway, requestId, 'resource.delivered');
      assert.deepEqual(
        events.filter(({ callId }) => callId === events.at(-1)?.callId).map(({ type }) => type),
        ['resource.requested', 'payment.verified', 'backend.called', 'payment.settled', 'resource.delivered'],
      );

      const [request, ...others] = backend.requests;
      assert.deepEqual(others, [], 'the backend is called once');
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
