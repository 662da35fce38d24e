import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { decodePaymentResponseHeader, wrapFetchWithPayment } from '@x402/fetch';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import type { CommerceEvent } from '../../src/events/event.ts';
import { CALL_ID } from '../../src/events/event.ts';
import type { Receipt } from '../../src/receipts/receipt.ts';
import { type Chain, startChain } from '../../tools/local-world/chain.ts';
import { createBuyer } from '../support/buyer.ts';
import { type Facilitator, startFacilitator } from '../support/facilitator.ts';
import { openGateway, type TestGateway, type TestGatewayParts } from '../support/gateway.ts';
import { eventsUntil, eventually, receiptWhen } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';

/** `market_report` costs 0.01 of a token with six decimals. */
const PRICE_UNITS = 10_000n;

describe('the official x402 client buys a resource', () => {
  let chain: Chain;
  let backend: SampleBackend;
  let facilitator: Facilitator;
  let redis: Awaited<ReturnType<typeof startRedis>>;
  const folder = mkdtempSync(join(tmpdir(), 'acg-purchase-'));

  before(async () => {
    [chain, backend, redis] = await Promise.all([startChain(), startSampleBackend(), startRedis()]);
    facilitator = await startFacilitator(chain);
  });
  after(async () => {
    await facilitator?.stop();
    await Promise.all([chain?.stop(), backend?.stop(), redis?.stop()]);
    rmSync(folder, { recursive: true, force: true });
  });

  const stores: Readonly<Record<string, () => NonNullable<TestGatewayParts['storage']>>> = {
    Redis: () => ({ redis: { url: redis.url } }),
    SQLite: () => ({ sqlite: { path: join(folder, `${Math.random()}.db`) } }),
  };
  const rails: Readonly<Record<string, () => TestGatewayParts['facilitator']>> = {
    'the local rail': () => ({ mode: 'local' }),
    'a remote facilitator of the official packages': () => ({ mode: 'remote', url: facilitator.url }),
  };

  for (const [storeName, storage] of Object.entries(stores))
    for (const [railName, rail] of Object.entries(rails))
      it(`on ${storeName}, through ${railName}: exact balances, summary, receipt and six kinds of events`, async () => {
        const payTo = privateKeyToAddress(generatePrivateKey());
        const gateway = await openGateway({
          chain,
          backendUrl: backend.url,
          storage: storage(),
          facilitator: rail(),
          payTo,
        });
        try {
          const buyer = await createBuyer(chain);
          const before = await buyer.balance();
          const requestId = `purchase-${storeName}-${rail().mode}`;
          const pay = wrapFetchWithPayment(fetch, buyer.client);
          const answer = await pay(`${gateway.url}/api/resources/market_report/invoke`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', 'x-request-id': requestId },
            body: JSON.stringify({ city: 'São Paulo' }),
          });

          assert.equal(answer.status, 200);
          assert.equal(answer.headers.get('x-request-id'), requestId);
          assert.equal(answer.headers.get('cache-control'), 'private, no-store');
          assert.deepEqual(await answer.json(), { city: 'São Paulo', currency: 'EUR', price: '12.50', volume: 340 });
          assert.equal(before - (await buyer.balance()), PRICE_UNITS);
          assert.equal(await chain.balanceOf(payTo), PRICE_UNITS);

          const summary = decodePaymentResponseHeader(
            answer.headers.get('payment-response') ?? '',
          ) as unknown as Record<string, unknown>;
          const receipt = await receiptWhen(gateway, requestId, true);
          assert.deepEqual(summary, {
            success: true,
            transaction: receipt.payment?.externalReference,
            network: 'eip155:31337',
            status: 'settled',
            provider: 'x402',
            amount: '0.01',
            currency: 'TUSD',
            payer: buyer.address.toLowerCase(),
            receiptId: receipt.id,
            requestId,
          });
          const mined = (await chain.request('eth_getTransactionReceipt', [summary['transaction']])) as {
            status: string;
          };
          assert.equal(mined.status, '0x1');
          assert.equal(receipt.backendStatus, 200);
          assert.equal(receipt.payment?.payee.toLowerCase(), payTo.toLowerCase());

          const events = await eventsUntil(gateway, requestId, 'resource.delivered');
          assert.deepEqual(
            events.map((event) => event.type),
            [
              'resource.requested',
              'payment.required',
              'resource.requested',
              'payment.verified',
              'payment.settled',
              'backend.called',
              'resource.delivered',
            ],
          );
          assert.equal(new Set(events.map((event) => event.type)).size, 6);
          for (const event of events) assert.deepEqual([event.resourceId, event.adapter], ['market_report', 'http']);
          await oneCallIsOne(gateway, requestId, events, receipt);
        } finally {
          await gateway.close();
        }
      });
});

/**
 * Two callers choose the same request id for challenge and purchase: the ids of the gateway
 * distinguish them.
 */
async function oneCallIsOne(
  gateway: TestGateway,
  requestId: string,
  events: readonly CommerceEvent[],
  receipt: Receipt,
): Promise<void> {
  const [challenged, paid = '', ...others] = new Set(events.map(({ callId }) => callId));
  assert.deepEqual([others.length, receipt.metadata?.callId], [0, paid]);
  assert.match(paid, CALL_ID);
  assert.deepEqual(
    events.map(({ callId }) => callId),
    [challenged, challenged, ...Array.from({ length: 5 }, () => paid)],
  );
  const stranger = await fetch(`${gateway.url}/api/resources/cities/invoke`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-request-id': requestId },
    body: '{}',
  });
  assert.equal(stranger.status, 200);
  const listed = async (path: string) =>
    (await (await gateway.operator(path)).json()) as { events?: CommerceEvent[]; receipts?: Receipt[] };
  const shared = await eventually(async () => {
    const { receipts } = await listed(`/api/receipts?requestId=${requestId}`);
    return receipts?.length === 2 ? receipts : undefined;
  }, 'the receipts of both');
  assert.equal(new Set(shared.map(({ metadata }) => metadata?.callId)).size, 2);
  assert.deepEqual((await listed(`/api/receipts?callId=${paid}`)).receipts, [receipt]);
  assert.deepEqual((await listed(`/api/events?callId=${paid}`)).events?.toReversed(), events.slice(2));
  assert.equal((await gateway.operator('/api/events?callId=of-mine')).status, 400);
}
