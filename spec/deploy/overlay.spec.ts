import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podOf } from './manifest.ts';
import { Development, renderDevelopment } from './rendered.ts';

const dev = new Development();

const PLACEHOLDER = /\$\{([A-Z_]+)\}/g;
/** No secret: the injection sets it. */
const OF_INJECTION = 'MERCHANT_BASE_URL';

function config(): string {
  return dev.pick('ConfigMap', 'agent-commerce-gateway-config').data?.['gateway.yaml'] ?? '';
}

/** The decoded keys of a Secret: what its files hold. */
function secrets(name: string): Readonly<Record<string, string>> {
  const entries = Object.entries(dev.pick('Secret', name).data ?? {});
  return Object.fromEntries(entries.map(([key, value]) => [key, Buffer.from(value, 'base64').toString().trimEnd()]));
}

describe('the development overlay', () => {
  it('renders the objects of one merchant, its gateway and its Redis', () => {
    const names = dev.objects.map(({ kind, metadata }) => `${kind}/${metadata.name.replace(/-[0-9a-z]{10}$/, '')}`);
    assert.deepEqual(names.sort(), [
      'ConfigMap/agent-commerce-gateway-config',
      'ConfigMap/market-shop-source',
      'ConfigMap/redis-config',
      'Deployment/market-shop',
      'Namespace/agent-commerce-dev',
      'NetworkPolicy/merchant-agents',
      'NetworkPolicy/merchant-agents-egress',
      'NetworkPolicy/merchant-agents-redis',
      'NetworkPolicy/redis',
      'PodDisruptionBudget/merchant-agents',
      'Secret/agent-commerce-gateway-secret',
      'Secret/redis-auth',
      'Service/merchant-agents',
      'Service/redis',
      'ServiceAccount/merchant-agents',
      'StatefulSet/redis',
    ]);
  });

  it('rolls the pods when the configuration changes: generated names carry a hash, which pods mount', () => {
    for (const kind of ['ConfigMap', 'Secret']) {
      for (const { metadata } of dev.objects.filter((object) => object.kind === kind)) {
        assert.match(metadata.name, /-[0-9a-z]{10}$/);
        assert.ok(
          dev.workloads.some((workload) => JSON.stringify(podOf(workload).volumes).includes(`"${metadata.name}"`)),
          `${metadata.name} is mounted`,
        );
      }
    }
  });

  it('does not render before its secrets exist', () => {
    assert.throws(() => renderDevelopment(false), /ADMIN_TOKEN/);
  });
});

describe('what the pods get', () => {
  it('is every secret that the configuration names, and no other', () => {
    const asked = [...config().matchAll(PLACEHOLDER)].map(([, name]) => name).filter((name) => name !== OF_INJECTION);
    assert.deepEqual(Object.keys(secrets('agent-commerce-gateway-secret')).sort(), asked.sort());
  });

  it('is a Redis whose password the gateway has, different from the operator token', () => {
    const { ADMIN_TOKEN = '', REDIS_URL } = secrets('agent-commerce-gateway-secret');
    const password = /^requirepass ([0-9a-f]{48})$/.exec(secrets('redis-auth')['REDIS_AUTH'] ?? '')?.[1];
    assert.equal(REDIS_URL, `redis://:${password}@redis:6379/0`);
    assert.match(ADMIN_TOKEN, /^[0-9a-f]{48}$/);
    assert.notEqual(ADMIN_TOKEN, password);
  });

  it('is a Redis that never drops a payment', () => {
    const conf = dev.pick('ConfigMap', 'redis-config').data?.['redis.conf'] ?? '';
    for (const line of ['maxmemory-policy noeviction', 'appendonly yes', 'appendfsync everysec']) {
      assert.ok(conf.split('\n').includes(line), line);
    }
  });
});
