import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startHostileFacilitator } from '../support/hostile-facilitator.ts';
import { startRedis } from '../support/redis.ts';
import { openTestbed } from '../support/testbed.ts';
import { ask, assertEnvelope } from './ask.ts';

describe('failures around the settlement', () => {
  it('callers that leave do not free slots beyond the cap', async () => {
    const facilitator = await startHostileFacilitator('eip155:31337');
    const testbed = await openTestbed({
      facilitator: { mode: 'remote', url: facilitator.url },
      overrides: { limits: { maxInFlight: 2 } },
    });
    try {
      facilitator.script({ verify: () => ({ kind: 'hang' }) });
      const proofs = await Promise.all(
        Array.from({ length: 6 }, () => testbed.proof('market_report', { city: 'Berlin' })),
      );
      for (const proof of proofs) {
        const leaving = AbortSignal.timeout(60);
        await fetch(`${testbed.gateway.url}/api/resources/market_report/invoke`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'payment-signature': proof },
          body: JSON.stringify({ city: 'Berlin' }),
          signal: leaving,
        }).then(
          (response) => response.arrayBuffer(),
          () => undefined,
        );
      }
      assert.equal(facilitator.calls.filter(({ path }) => path === '/verify').length, 2);
    } finally {
      await facilitator.stop();
      await testbed.close();
    }
  });

  it('GATEWAY_BUSY 503 above the cap on calls in flight', async () => {
    const testbed = await openTestbed({ overrides: { limits: { maxInFlight: 1 } } });
    try {
      testbed.backend.hold();
      const arrived = testbed.backend.nextRequest('/held');
      const first = testbed.gateway.invoke('free_held');
      await arrived;
      const second = await ask(testbed.gateway.url, { path: '/api/resources/cities/invoke', body: '{}' });
      assert.equal(second.status, 503);
      assertEnvelope(second, 'GATEWAY_BUSY');
      assert.equal(second.headers['retry-after'], '1');
      assert.equal((await ask(testbed.gateway.url, { method: 'GET', path: '/health', headers: {} })).status, 200);
      testbed.backend.release();
      const admitted = await first;
      assert.equal(admitted.status, 200);
      await admitted.arrayBuffer();
      for (let call = 0; call < 3; call += 1) {
        const next = await testbed.gateway.invoke('cities');
        assert.equal(next.status, 200, 'places are given back');
        await next.arrayBuffer();
      }
    } finally {
      await testbed.close();
    }
  });

  it('STORAGE_ERROR 503 before money moves, and never a replay, when the store is gone', async () => {
    const redis = await startRedis();
    const testbed = await openTestbed({ storage: { redis: { url: redis.url } } });
    try {
      const proof = await testbed.proof('market_report', { city: 'Berlin' });
      await redis.stop();
      const answer = await testbed.gateway.invoke('market_report', { city: 'Berlin' }, { 'payment-signature': proof });
      const body = (await answer.json()) as { code: string; retryable: boolean };
      assert.deepEqual([answer.status, body.code, body.retryable], [503, 'STORAGE_ERROR', true]);
      assert.equal(await testbed.income(), 0n);
      const free = await testbed.gateway.invoke('cities');
      assert.equal(free.status, 200, 'free resources need no store');
      await free.arrayBuffer();
    } finally {
      await testbed.close();
      await redis.stop();
    }
  });

  describe('a remote facilitator that gives no verdict', () => {
    it('PAYMENT_PROVIDER_UNAVAILABLE 503 before settlement, and the same proof works later', async () => {
      const facilitator = await startHostileFacilitator('eip155:31337');
      const testbed = await openTestbed({ facilitator: { mode: 'remote', url: facilitator.url } });
      try {
        facilitator.script({ verify: () => ({ kind: 'json', status: 500, body: { oops: true } }) });
        const proof = await testbed.proof('market_report', { city: 'Berlin' });
        for (let attempt = 0; attempt < 2; attempt += 1) {
          const answer = await testbed.gateway.invoke(
            'market_report',
            { city: 'Berlin' },
            { 'payment-signature': proof },
          );
          const body = (await answer.json()) as { code: string; retryable: boolean };
          assert.deepEqual([answer.status, body.code, body.retryable], [503, 'PAYMENT_PROVIDER_UNAVAILABLE', true]);
        }
        assert.equal(facilitator.calls.filter(({ path }) => path === '/settle').length, 0);
      } finally {
        await testbed.close();
        await facilitator.stop();
      }
    });

    it('PAYMENT_SETTLEMENT_FAILED 502 after it: uncertain, with no time at which to sign again, never 402', async () => {
      const facilitator = await startHostileFacilitator('eip155:31337');
      const testbed = await openTestbed({ facilitator: { mode: 'remote', url: facilitator.url } });
      try {
        facilitator.script({ settle: () => ({ kind: 'reset' }) });
        const proof = await testbed.proof('market_report', { city: 'Berlin' });
        for (let attempt = 0; attempt < 2; attempt += 1) {
          const answer = await testbed.gateway.invoke(
            'market_report',
            { city: 'Berlin' },
            { 'payment-signature': proof },
          );
          const body = (await answer.json()) as { code: string; retryable: boolean; details: Record<string, unknown> };
          assert.deepEqual([answer.status, body.code, body.retryable], [502, 'PAYMENT_SETTLEMENT_FAILED', true]);
          assert.equal(answer.headers.get('retry-after'), '2');
          assert.deepEqual(body.details, { settlementUncertain: true });
        }
      } finally {
        await testbed.close();
        await facilitator.stop();
      }
    });
  });
});
