import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { TrustHealth } from '../../../src/mandates/ap2/issuers.ts';
import { openStore } from '../../../src/store/open.ts';
import { type Monitor, startMonitor, watched } from '../../../src/telemetry/health/monitor.ts';
import { createLog } from '../../../src/telemetry/log/log.ts';
import { load } from '../../config/document/document.ts';

const CAUSE = 'no_keys: https://agents.example (connection refused)';

/** A gateway's readiness over a real store, with this check of the trusted issuers. */
async function watch(t: TestContext, check?: () => Promise<TrustHealth>): Promise<{ monitor: Monitor; log: string[] }> {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const config = load({});
  const store = await openStore(
    { ...config.storage, merchantId: config.merchant.id },
    createLog('silent', [], { write: () => undefined }),
  );
  const log: string[] = [];
  const monitor = startMonitor({
    ...watched({ config, store, rail: undefined, ...(check === undefined ? {} : { trust: { check } }) }),
    gate: { draining: () => false },
    onChange: (name, { status }, cause) => void log.push(`${name} ${status} ${cause ?? ''}`.trim()),
  });
  t.after(async () => {
    monitor.close();
    await store.close();
  });
  return { monitor, log };
}

async function round(t: TestContext): Promise<void> {
  t.mock.timers.tick(2_000);
  for (let turns = 0; turns < 10; turns += 1) await turn();
}

describe('the readiness of mandates', () => {
  it('is not shown by a gateway without mandates', async (t) => {
    const { monitor } = await watch(t);
    assert.deepEqual((await monitor.readiness()).authorizationProviders, []);
  });

  it('passes, warns with old keys and stays ready, and fails without any', async (t) => {
    let health: TrustHealth = { found: 'ok' };
    const { monitor, log } = await watch(t, async () => health);
    const shown = async (): Promise<readonly [boolean, object | undefined]> => {
      const { ready, authorizationProviders } = await monitor.readiness();
      assert.equal(authorizationProviders.length, 1);
      return [ready, authorizationProviders[0]];
    };
    assert.deepEqual(await shown(), [true, { name: 'ap2', status: 'pass' }]);
    health = { found: 'degraded', cause: 'keys_stale: https://agents.example' };
    await round(t);
    const degraded = { name: 'ap2', status: 'warn', detail: 'authorization-provider-degraded' };
    assert.deepEqual(await shown(), [true, degraded]);
    health = { found: 'unreachable', cause: CAUSE };
    await round(t);
    assert.deepEqual(await shown(), [true, { ...degraded, detail: 'authorization-provider-unreachable' }]);
    await round(t);
    await round(t);
    const failed = { name: 'ap2', status: 'fail', detail: 'authorization-provider-unreachable' };
    assert.deepEqual(await shown(), [false, failed]);
    health = { found: 'ok' };
    await round(t);
    assert.deepEqual(await shown(), [true, { name: 'ap2', status: 'pass' }]);
    const lines = log.filter((line) => line.startsWith('ap2'));
    assert.deepEqual(lines, [
      'ap2 pass',
      'ap2 warn keys_stale: https://agents.example',
      `ap2 fail ${CAUSE}`,
      'ap2 pass',
    ]);
  });
});
