import assert from 'node:assert/strict';
import { afterEach, describe, it, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { TrustHealth } from '../../../src/mandates/ap2/issuers.ts';
import { openStore } from '../../../src/store/open.ts';
import {
  type CheckState,
  type Monitor,
  type Observation,
  observe,
  renderCheck,
  startMonitor,
  UNSEEN,
  watched,
} from '../../../src/telemetry/health/monitor.ts';
import { createLog } from '../../../src/telemetry/log/log.ts';
import { load } from '../../config/document/document.ts';

describe('a backend that can be called past the gateway', () => {
  let monitor: Monitor;
  afterEach(() => monitor.close());

  function watch(
    adapters: readonly string[],
    facts: { bypassed: boolean; draining: boolean; faulty?: boolean; reachable?: boolean },
  ): Monitor {
    monitor = startMonitor({
      store: { name: 'sqlite', kind: 'store', look: async () => ({ found: 'ok' }) },
      paymentProviders: [],
      authorizationProviders: [],
      adapters,
      gate: { draining: () => facts.draining },
      bypassed: () => facts.bypassed,
      backendReachable: () => facts.reachable !== false,
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

  it('one that is away is warned of instead, and the process stays ready', async () => {
    const watched = watch(['http'], { bypassed: true, draining: false, reachable: false });
    const { ready, backend } = await watched.readiness();
    assert.deepEqual([ready, backend], [true, { name: 'backend', status: 'warn', detail: 'backend-unreachable' }]);
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

/** The looks, and the status after each. */
interface Course {
  readonly rule: string;
  readonly looks: readonly (readonly [atMs: number, found: Observation, status: CheckState['status']])[];
}

const COURSES: readonly Course[] = [
  { rule: 'what was never seen working is failing', looks: [[0, 'unreachable', 'fail']] },
  { rule: 'one good look passes', looks: [[0, 'ok', 'pass']] },
  {
    rule: 'the first failure warns, the third in a row fails',
    looks: [
      [0, 'ok', 'pass'],
      [2_000, 'unreachable', 'warn'],
      [4_000, 'unreachable', 'warn'],
      [6_000, 'unreachable', 'fail'],
    ],
  },
  {
    rule: 'a good look in between starts the count again',
    looks: [
      [0, 'ok', 'pass'],
      [2_000, 'unreachable', 'warn'],
      [4_000, 'ok', 'pass'],
      [6_000, 'unreachable', 'warn'],
      [8_000, 'unreachable', 'warn'],
    ],
  },
  {
    rule: 'ten seconds without a good look fail whatever the count',
    looks: [
      [0, 'ok', 'pass'],
      [9_999, 'unreachable', 'warn'],
      [10_000, 'unreachable', 'fail'],
    ],
  },
  {
    rule: 'a store that cannot write fails at once',
    looks: [
      [0, 'ok', 'pass'],
      [2_000, 'unwritable', 'fail'],
      [4_000, 'ok', 'pass'],
    ],
  },
  {
    rule: 'degraded warns and never fails',
    looks: [
      [0, 'degraded', 'warn'],
      [2_000, 'degraded', 'warn'],
      [4_000, 'degraded', 'warn'],
      [6_000, 'degraded', 'warn'],
      [60_000, 'ok', 'pass'],
    ],
  },
];

describe('readiness of a component', () => {
  for (const { rule, looks } of COURSES)
    it(rule, () => {
      let state = UNSEEN;
      for (const [atMs, found, status] of looks) {
        state = observe(state, found, atMs);
        assert.equal(state.status, status, `${found} at ${atMs} ms`);
      }
    });

  it('details come from the closed vocabulary, and a pass has none', () => {
    const after = (found: Observation): CheckState => observe(observe(UNSEEN, 'ok', 0), found, 1);
    assert.deepEqual(renderCheck('redis', 'store', after('ok')), { name: 'redis', status: 'pass' });
    for (const [name, kind, found, status, detail] of [
      ['redis', 'store', 'unreachable', 'warn', 'store-unreachable'],
      ['redis', 'store', 'degraded', 'warn', 'store-degraded'],
      ['redis', 'store', 'unwritable', 'fail', 'store-unwritable'],
      ['x402', 'payment-provider', 'unreachable', 'warn', 'payment-provider-unreachable'],
    ] as const)
      assert.deepEqual(renderCheck(name, kind, after(found)), { name, status, detail });
  });
});

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
