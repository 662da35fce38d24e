import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type Monitor, startMonitor } from '../../../src/telemetry/health/monitor.ts';

describe('a backend that can be called past the gateway', () => {
  let monitor: Monitor;
  afterEach(() => monitor.close());

  function watch(adapters: readonly string[], facts: { bypassed: boolean; draining: boolean }): Monitor {
    monitor = startMonitor({
      store: { name: 'sqlite', kind: 'store', look: async () => ({ found: 'ok' }) },
      paymentProviders: [],
      authorizationProviders: [],
      adapters,
      gate: { draining: () => facts.draining },
      bypassed: () => facts.bypassed,
      onChange: () => undefined,
    });
    return monitor;
  }

  const WARNED = { status: 'warn', detail: 'adapter-degraded' } as const;
  for (const [adapters, warned] of [
    [['http', 'mcp', 'a2a'], 'http'],
    [['mcp', 'a2a'], 'mcp'],
  ] as const)
    it(`degrades ${warned} of ${adapters.join(', ')}, in readiness and discovery, and stays ready`, async () => {
      const facts = { bypassed: true, draining: false };
      const watched = watch(adapters, facts);
      const { ready, adapters: checks } = await watched.readiness();
      assert.equal(ready, true);
      for (const check of checks)
        assert.deepEqual(check, { name: check.name, ...(check.name === warned ? WARNED : { status: 'pass' }) });
      assert.equal(watched.adapterHealth()[warned]?.status, 'warn');
      facts.bypassed = false;
      assert.deepEqual((await watched.readiness()).adapters[0], { name: warned, status: 'pass' });
    });

  it('a drain is shown instead', async () => {
    const watched = watch(['http'], { bypassed: true, draining: true });
    const { ready, adapters } = await watched.readiness();
    assert.deepEqual([ready, adapters], [false, [{ name: 'http', status: 'fail', detail: 'draining' }]]);
  });
});

describe('a monitor that is closed', () => {
  it('reports nothing of a look that still runs: the component is being closed', async () => {
    const looking = Promise.withResolvers<{ readonly found: 'unwritable' }>();
    const changes: string[] = [];
    const monitor = startMonitor({
      store: { name: 'sqlite', kind: 'store', look: () => looking.promise },
      paymentProviders: [],
      authorizationProviders: [],
      adapters: ['http'],
      gate: { draining: () => false },
      onChange: (name) => changes.push(name),
    });
    const readiness = monitor.readiness();
    monitor.close();
    looking.resolve({ found: 'unwritable' });
    await readiness;
    assert.deepEqual(changes, []);
  });
});

describe('a component whose look hangs', () => {
  it('fails every round: it warns with the first and fails with the third', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
    let looks = 0;
    const changes: string[] = [];
    const monitor = startMonitor({
      store: {
        name: 'redis',
        kind: 'store',
        look: () => (++looks === 1 ? Promise.resolve({ found: 'ok' }) : new Promise(() => undefined)),
      },
      paymentProviders: [],
      authorizationProviders: [],
      adapters: ['http'],
      gate: { draining: () => false },
      onChange: (name, { status }) => changes.push(`${name} ${status}`),
    });
    t.after(() => monitor.close());
    await monitor.readiness();
    for (let round = 0; round < 3; round += 1) {
      t.mock.timers.tick(1_999);
      await turn();
      t.mock.timers.tick(1);
      await turn();
    }
    t.mock.timers.tick(1_000);
    await turn();
    assert.equal(looks, 2, 'there is no second look beside one that hangs');
    assert.deepEqual(changes, ['redis pass', 'redis warn', 'redis fail']);
    assert.equal((await monitor.readiness()).ready, false);
  });
});
