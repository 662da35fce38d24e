import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { PAYMENT_CHANNEL, type PaymentStep } from '../../src/payments/settlement/attempt.ts';
import { type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { scrape } from '../telemetry/scrape.ts';
import { bring } from './bring.ts';
import { CHANNELS } from './mandate-channels.ts';

const INPUT = { city: 'Berlin' };
/**
 * What `held_post` may take, and so how long a call whose merchant is gone goes on trying,
 * milliseconds.
 */
const TIMEOUT_MS = 1_500;

describe('a merchant that is away around a settlement', () => {
  let testbed: Testbed;
  let returned: SampleBackend | undefined;
  beforeEach(async () => {
    testbed = await openTestbed({
      overrides: {
        protocols: { mcp: { enabled: true }, a2a: { enabled: true } },
        resources: { held_post: { backend: { timeoutMs: TIMEOUT_MS } } },
      },
    });
  });
  afterEach(async () => {
    await testbed.close();
    await returned?.stop();
    returned = undefined;
  });
  const reachable = async (): Promise<number | undefined> =>
    (await scrape(testbed.gateway.managementUrl)).get('acg_backend_reachable');
  const warned = async (): Promise<unknown> =>
    (await scrape(testbed.gateway.managementUrl)).get('acg_component_status{component="backend"}');
  const logged = (text: string): boolean => testbed.gateway.logLines.some((line) => line.includes(`"${text}`));
  const back = async (): Promise<void> => {
    returned = await startSampleBackend({ port: Number(new URL(testbed.backend.url).port) });
    returned.release();
  };
  /** Ends the merchant as soon as a payment passes this step. */
  const leaveAt = (step: PaymentStep): void => {
    const leave = (message: unknown): void => {
      if ((message as { readonly step: string }).step !== step) return;
      unsubscribe(PAYMENT_CHANNEL, leave);
      void testbed.backend.stop();
    };
    subscribe(PAYMENT_CHANNEL, leave);
  };

  for (const [channel, send] of Object.entries(CHANNELS))
    it(`${channel}: without the backend 503 before money moves, and the same proof and key buy when it is back`, async () => {
      const proof = await testbed.proof('market_report', INPUT);
      const call = { resourceId: 'market_report', input: INPUT, proof, headers: { 'idempotency-key': 'mine' } };
      await testbed.backend.stop();
      for (let attempt = 0; attempt < 3; attempt += 1) {
        const reply = await send(testbed.gateway, call);
        assert.equal(reply.code, 'GATEWAY_BUSY', reply.raw);
        assert.deepEqual([reply.body.details, reply.body['retryable']], [{ reason: 'backend_unreachable' }, true]);
        assert.equal(reply.headers.get('payment-response'), null);
        assert.ok(!/payment-response|x402\.payment\.receipts/.test(reply.raw), reply.raw);
        if (channel === 'http') assert.equal(reply.headers.get('retry-after'), '1');
      }
      assert.equal(await testbed.income(), 0n);
      assert.deepEqual(await testbed.gateway.store.ledger.due(10), []);
      assert.deepEqual([await warned(), logged('the backend cannot be reached')], [1, true]);
      await back();
      while ((await reachable()) !== 1) await pause(20);
      assert.deepEqual([await warned(), logged('the backend can be reached')], [0, true]);
      const sold = await send(testbed.gateway, call);
      assert.equal(sold.code, undefined, sold.raw);
      assert.ok((await testbed.income()) > 0n);
    });

  for (const step of ['settling', 'settled'] as const)
    it(`leaves at "${step}" and comes back in time: a POST is delivered, once`, async () => {
      const proof = await testbed.proof('held_post');
      leaveAt(step);
      const answer = bring(testbed.gateway, 'held_post', {}, { proof });
      while ((await reachable()) !== 0) await pause(10);
      await back();
      assert.equal((await answer).status, 200);
      assert.equal(returned?.requests.length, 1);
    });
});
