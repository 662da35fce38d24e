import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Readiness } from '../../src/telemetry/health/monitor.ts';
import { mergeReadiness, mergeRouting } from '../../src/workers/merge-readiness.ts';

const GOOD: Readiness = {
  ready: true,
  store: { name: 'redis', status: 'pass' },
  backend: { name: 'backend', status: 'pass' },
  adapters: [
    { name: 'http', status: 'pass' },
    { name: 'mcp', status: 'pass' },
  ],
  paymentProviders: [{ name: 'x402', status: 'pass' }],
  authorizationProviders: [],
};

describe('the readiness of all workers', () => {
  it('is that of one of them when they agree', () => assert.deepEqual(mergeReadiness([GOOD, GOOD]), GOOD));

  it('has the worst of each component, wherever it is', () => {
    const drains = { name: 'mcp', status: 'fail', detail: 'draining' } as const;
    const slow = { name: 'x402', status: 'warn', detail: 'payment-provider-degraded' } as const;
    const one: Readiness = { ...GOOD, paymentProviders: [slow] };
    const other: Readiness = { ...GOOD, ready: false, adapters: [GOOD.adapters[0] ?? drains, drains] };
    assert.deepEqual(mergeReadiness([one, other]), { ...other, paymentProviders: [slow] });
    assert.deepEqual(mergeReadiness([other, one]), { ...other, paymentProviders: [slow] });
  });

  it('fails with every adapter while one of them does not answer, and says what is known of the rest', () => {
    const adapters = GOOD.adapters.map(({ name }) => ({ name, status: 'fail', detail: 'adapter-unreachable' }));
    for (const found of [
      [GOOD, undefined],
      [undefined, GOOD],
    ])
      assert.deepEqual(mergeReadiness(found), { ...GOOD, ready: false, adapters });
    assert.deepEqual(mergeReadiness([undefined]), mergeReadiness([]));
  });

  it('is the worst of them at /routing, where one that does not answer fails', () => {
    const pass = { name: 'routing', status: 'pass' } as const;
    assert.deepEqual(mergeRouting([pass, pass]), pass);
    assert.deepEqual(mergeRouting([pass, undefined]), {
      name: 'routing',
      status: 'fail',
      detail: 'adapter-unreachable',
    });
  });

  it('fails while no worker serves', () => {
    const { ready, store } = mergeReadiness([]);
    assert.deepEqual([ready, store.status], [false, 'fail']);
    assert.equal(mergeRouting([]).status, 'fail');
  });
});
