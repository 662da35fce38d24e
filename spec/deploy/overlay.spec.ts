import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { podOf } from './manifest.ts';
import { Development, renderDevelopment } from './rendered.ts';

const dev = new Development();

const PLACEHOLDER = /\$\{([A-Z_]+)\}/g;

function config(): string {
  return dev.pick('ConfigMap', 'agent-commerce-gateway-config').data?.['gateway.yaml'] ?? '';
}

function secret(name: string, key: string): string {
  return Buffer.from(dev.pick('Secret', name).data?.[key] ?? '', 'base64').toString();
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

  it('rolls the pods when the configuration changes: generated names carry a hash and are referred to by it', () => {
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

  it('does not render before its secrets were made', () => {
    assert.throws(() => renderDevelopment(false), /gateway\.env/);
  });
});

describe('what the pods are given', () => {
  it('is a configuration that the published schema accepts, once its placeholders are filled in', () => {
    const schema: object = JSON.parse(
      readFileSync(new URL('../../schemas/config.schema.json', import.meta.url), 'utf8'),
    );
    const accepts = new Ajv2020({ strict: false, validateFormats: false }).compile(schema);
    const filled = config().replaceAll(PLACEHOLDER, (_all, name: string) =>
      secret('agent-commerce-gateway-secret', name),
    );
    accepts(parse(filled));
    assert.deepEqual(accepts.errors ?? [], []);
  });

  it('is every secret that the configuration asks for, and no other', () => {
    const asked = [...config().matchAll(PLACEHOLDER)].map(([, name]) => name);
    const given = Object.keys(dev.pick('Secret', 'agent-commerce-gateway-secret').data ?? {});
    assert.deepEqual(given.sort(), asked.sort());
  });

  it('is a Redis whose password the gateway has, different from the operator token', () => {
    const password = /^requirepass ([0-9a-f]{48})$/.exec(secret('redis-auth', 'REDIS_AUTH'))?.[1];
    assert.equal(secret('agent-commerce-gateway-secret', 'REDIS_URL'), `redis://:${password}@redis:6379/0`);
    assert.match(secret('agent-commerce-gateway-secret', 'ADMIN_TOKEN'), /^[0-9a-f]{48}$/);
    assert.notEqual(secret('agent-commerce-gateway-secret', 'ADMIN_TOKEN'), password);
  });

  it('is a Redis that never forgets a payment by itself', () => {
    const conf = dev.pick('ConfigMap', 'redis-config').data?.['redis.conf'] ?? '';
    for (const line of ['maxmemory-policy noeviction', 'appendonly yes', 'appendfsync everysec']) {
      assert.ok(conf.split('\n').includes(line), line);
    }
  });
});
