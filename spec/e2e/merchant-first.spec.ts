import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { PAYMENT_CHANNEL, type PaymentStep } from '../../src/payments/steps.ts';
import { type Merchant, startMerchant } from '../support/merchant.ts';
import { openSeller, type Seller } from '../support/seller.ts';
import { scrape } from '../telemetry/scrape.ts';
import { bring, failure } from './bring.ts';
import { CHANNELS } from './mandate-channels.ts';

const INPUT = { city: 'Berlin' };
/**
 * What `held_post` may take, and so how long a call whose merchant is gone goes on trying,
 * milliseconds.
 */
const TIMEOUT_MS = 1_500;

describe('the merchant before the money', () => {
  let seller: Seller;
  let returned: Merchant | undefined;
  beforeEach(async () => {
    seller = await openSeller({
      overrides: {
        protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
        resources: { held_post: { backend: { timeoutMs: TIMEOUT_MS } } },
      },
    });
  });
  afterEach(async () => {
    await seller.close();
    await returned?.stop();
    returned = undefined;
  });
  const reachable = async (): Promise<number | undefined> =>
    (await scrape(seller.shop.managementUrl)).get('acg_backend_reachable');
  const back = async (): Promise<void> => {
    returned = await startMerchant({ port: Number(new URL(seller.merchant.url).port) });
    returned.release();
  };
  /** Ends the merchant in the moment in which a payment passes this step. */
  const leaveAt = (step: PaymentStep): void => {
    const leave = (told: unknown): void => {
      if ((told as { readonly step: string }).step !== step) return;
      unsubscribe(PAYMENT_CHANNEL, leave);
      void seller.merchant.stop();
    };
    subscribe(PAYMENT_CHANNEL, leave);
  };

  for (const [channel, send] of Object.entries(CHANNELS))
    it(`${channel}: without the backend 503 before money moves, and the same proof and key buy when it is back`, async () => {
      const proof = await seller.proof('market_report', INPUT);
      const order = { resourceId: 'market_report', input: INPUT, proof, headers: { 'idempotency-key': 'mine' } };
      await seller.merchant.stop();
      for (let attempt = 0; attempt < 3; attempt += 1) {
        const reply = await send(seller.shop, order);
        assert.equal(reply.code, 'GATEWAY_BUSY', reply.raw);
        assert.deepEqual([reply.body.details, reply.body['retryable']], [{ reason: 'backend_unreachable' }, true]);
        assert.equal(reply.headers.get('payment-response'), null);
        assert.ok(!/payment-response|x402\.payment\.receipts/.test(reply.raw), reply.raw);
        if (channel === 'http') assert.equal(reply.headers.get('retry-after'), '1');
      }
      assert.equal(await seller.income(), 0n);
      assert.deepEqual(await seller.shop.store.ledger.due(10), []);
      await back();
      while ((await reachable()) !== 1) await pause(20);
      const sold = await send(seller.shop, order);
      assert.equal(sold.code, undefined, sold.raw);
      assert.ok((await seller.income()) > 0n);
    });

  it('is seen in readiness, which warns and goes on, in the metrics and in the log', async () => {
    const status = async (): Promise<unknown> => {
      const ready = await fetch(`${seller.shop.url}/ready`);
      const { adapters } = (await ready.json()) as { readonly adapters: readonly unknown[] };
      return [ready.status, adapters[0]];
    };
    const degraded = async (): Promise<unknown> =>
      (await scrape(seller.shop.managementUrl)).get('acg_adapter_degraded{cause="backend"}');
    const logged = (text: string): boolean => seller.shop.logLines.some((line) => line.includes(`"${text}`));
    assert.deepEqual(
      [await status(), await reachable(), await degraded()],
      [[200, { name: 'http', status: 'pass' }], 1, 0],
    );
    await seller.merchant.stop();
    failure(
      await bring(seller.shop, 'market_report', INPUT, { proof: await seller.proof('market_report', INPUT) }),
      503,
      'GATEWAY_BUSY',
    );
    assert.deepEqual(await status(), [200, { name: 'http', status: 'warn', detail: 'adapter-degraded' }]);
    assert.deepEqual([await reachable(), await degraded()], [0, 1]);
    assert.ok(logged('the backend cannot be reached'));
    await back();
    while ((await reachable()) !== 1) await pause(20);
    assert.deepEqual([await status(), await degraded()], [[200, { name: 'http', status: 'pass' }], 0]);
    assert.ok(logged('the backend can be reached'));
  });

  for (const step of ['settling', 'settled'] as const)
    it(`leaves at "${step}" and comes back in time: a POST is delivered, once`, async () => {
      const proof = await seller.proof('held_post');
      leaveAt(step);
      const answer = bring(seller.shop, 'held_post', {}, { proof });
      while ((await reachable()) !== 0) await pause(10);
      await back();
      assert.equal((await answer).status, 200);
      assert.equal(returned?.requests.length, 1);
    });

  it('leaves while the money moves and stays away: nothing was written, so any method is collected later', async () => {
    const proof = await seller.proof('held_post');
    leaveAt('settling');
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const body = failure(await bring(seller.shop, 'held_post', {}, { proof }), 502, 'BACKEND_ERROR');
      assert.deepEqual([body.retryable, body.details.reason, body.details.state], [true, 'transport', 'undelivered']);
    }
    assert.equal(await seller.income(), 1_000n);
    await back();
    assert.equal((await bring(seller.shop, 'held_post', {}, { proof })).status, 200);
    assert.equal(await seller.income(), 1_000n);
  });
});
