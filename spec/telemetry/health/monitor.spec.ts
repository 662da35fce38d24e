import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type Monitor, startMonitor } from '../../../src/telemetry/health/monitor.ts';

describe('a backend that can be called past the gateway', () => {
  let monitor: Monitor;
  afterEach(() => monitor.close());

  function watch(
    adapters: readonly string[],
    facts: { bypassed: boolean; draining: boolean; faulty?: boolean },
  ): Monitor {
    monitor = startMonitor({
      store: { name: 'sqlite', kind: 'store', look: async () => ({ found: 'ok' }) },
      paymentProviders: [],
      authorizationProviders: [],
      adapters,
      gate: { draining: () => facts.draining },
      bypassed: () => facts.bypassed,
      faulty: () => facts.faulty === true,
      onChange: () => undefined,
    });
    return monitor;
  }

  it('warns of it alone, and stays ready', async () => {
    const facts = { bypassed: true, draining: false };
    const watched = watch(['http', 'mcp'], facts);
    const { ready, backend, adapters } = await watched.readiness();
    assert.deepEqual([ready, backend], [true, { name: 'backend', status: 'warn', detail: 'backend-exposed' }]);
    assert.ok(adapters.every(({ status }) => status === 'pass'));
    facts.bypassed = false;
    assert.deepEqual((await watched.readiness()).backend, { name: 'backend', status: 'pass' });
  });

  it('a process that only a restart mends is not ready', async () => {
    const { ready, adapters } = await watch(['http'], { bypassed: false, draining: false, faulty: true }).readiness();
    assert.deepEqual([ready, adapters], [false, [{ name: 'http', status: 'fail', detail: 'adapter-degraded' }]]);
  });

  it('a drain is shown instead', async () => {
    const watched = watch(['http'], { bypassed: true, draining: true });
    const { ready, adapters } = await watched.readiness();
    assert.deepEqual([ready, adapters], [false, [{ name: 'http', status: 'fail', detail: 'draining' }]]);
  });
});

describe('whether requests may be routed to the process', () => {
  let monitor: Monitor;
  afterEach(() => monitor.close());
  type Found = Awaited<ReturnType<Parameters<typeof startMonitor>[0]['store']['look']>>['found'];

  function watch(
    store: () => Promise<{ found: Found }>,
    rail: () => Promise<{ found: Found }>,
    draining = false,
  ): Monitor {
    monitor = startMonitor({
      store: { name: 'redis', kind: 'store', look: store },
      paymentProviders: [{ name: 'x402', kind: 'payment-provider', look: rail }],
      authorizationProviders: [],
      adapters: ['http'],
      gate: { draining: () => draining },
      onChange: () => undefined,
    });
    return monitor;
  }
  const ok = async () => ({ found: 'ok' as const });
  const away = async () => ({ found: 'unreachable' as const });

  it('does not depend on a facilitator that is away, nor waits for one that is silent', async () => {
    for (const rail of [away, () => new Promise<{ found: Found }>(() => undefined)]) {
      assert.deepEqual(await watch(ok, rail).routing(), { name: 'routing', status: 'pass' });
      monitor.close();
    }
  });

  it('fails without the store, and says so', async () => {
    for (const [found, detail] of [
      ['unreachable', 'store-unreachable'],
      ['unwritable', 'store-unwritable'],
    ] as const) {
      const watched = watch(async () => ({ found }), ok);
      assert.deepEqual(await watched.routing(), { name: 'routing', status: 'fail', detail });
      monitor.close();
    }
  });

  it('passes where the store only warns', async () => {
    assert.equal((await watch(async () => ({ found: 'degraded' }), ok).routing()).status, 'pass');
  });

  it('fails from the begin of the drain, whatever the store is', async () => {
    for (const store of [ok, away]) {
      assert.deepEqual(await watch(store, ok, true).routing(), { name: 'routing', status: 'fail', detail: 'draining' });
      monitor.close();
    }
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
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    /** In steps, because a deadline that finds a leap of the clock takes it for a standstill. */
    const wait = async (ms: number): Promise<void> => {
      for (const end = now + ms; now < end; ) {
        const step = Math.min(10, end - now);
        now += step;
        t.mock.timers.tick(step);
      }
      await turn();
    };
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
      await wait(1_999);
      await wait(1);
    }
    await wait(1_000);
    assert.equal(looks, 2, 'there is no second look beside one that hangs');
    assert.deepEqual(changes, ['redis pass', 'redis warn', 'redis fail']);
    assert.equal((await monitor.readiness()).ready, false);
  });
});
