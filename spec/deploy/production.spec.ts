import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { parse, stringify } from 'yaml';
import { checkedDrain, processSettings } from '../../src/cli/checked-start.ts';
import { parseConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/problems/problem.ts';
import { containersOf, type Manifest, pick, podOf } from './manifest.ts';
import { GATEWAY, Production } from './rendered.ts';

const { objects, gateway } = new Production();
const deployment = pick(objects, 'Deployment', 'market-shop');
const text = pick(objects, 'ConfigMap', 'agent-commerce-gateway-config').data?.['gateway.yaml'] ?? '';

const work = mkdtempSync(join(tmpdir(), 'production-'));
after(() => rmSync(work, { recursive: true }));
const SEALING_KEY = join(work, 'SEALING_KEY');
writeFileSync(SEALING_KEY, Buffer.alloc(32, 7).toString('base64'));

/** What the injection and the Secret give the gateway. */
const ENV = {
  ADMIN_TOKEN: 'a'.repeat(48),
  REDIS_URL: 'rediss://shop:password@redis.example:6379/0',
  MERCHANT_BASE_URL: 'http://127.0.0.1:3000',
};

/** What each placeholder is replaced with. */
const REPLACEMENTS: Readonly<Record<string, unknown>> = {
  'merchant.id': 'market-shop',
  'merchant.publicBaseUrl': 'https://api.market-shop.example',
  'payments.x402.payTo': '0x1111111111111111111111111111111111111111',
  'payments.x402.rpcUrl': 'https://node.example',
  'payments.x402.facilitator.url': 'https://facilitator.example',
};
const ALLOW = { 'payments.x402.allowMainnet': true };

/** The configuration with values in the place of those at some paths. */
function configured(changes: Readonly<Record<string, unknown>>): string {
  const document: unknown = parse(text.replace('/run/agent-commerce/SEALING_KEY', SEALING_KEY));
  for (const [path, value] of Object.entries(changes)) {
    const members = path.split('.');
    const last = members.pop() ?? '';
    const holder = members.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], document);
    (holder as Record<string, unknown>)[last] = value;
  }
  return stringify(document);
}

/** Paths that the configuration is refused at; none when it is accepted. */
function refusedAt(changes: Readonly<Record<string, unknown>>): readonly string[] {
  try {
    parseConfig(configured(changes), ENV);
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.problems.map(({ path }) => path);
  }
}

function specOf<T>(kind: string, name: string): T {
  return pick(objects, kind, name).spec as unknown as T;
}

describe('the production overlay', () => {
  it('has a placeholder wherever a value says REPLACE, and each is refused until it is replaced', () => {
    assert.equal([...text.matchAll(/: "REPLACE: /g)].length, Object.keys(REPLACEMENTS).length);
    assert.deepEqual([...refusedAt({})].sort(), Object.keys(REPLACEMENTS).sort());
    for (const path of Object.keys(REPLACEMENTS)) {
      const { [path]: _, ...others } = REPLACEMENTS;
      assert.deepEqual(refusedAt({ ...others, ...ALLOW }), [path]);
    }
  });

  it('takes real money only after one more word', () => {
    assert.deepEqual(refusedAt(REPLACEMENTS), ['payments.x402.allowMainnet']);
    assert.deepEqual(refusedAt({ ...REPLACEMENTS, ...ALLOW }), []);
  });

  it('leaves room for the drain of its configuration', () => {
    const config = parseConfig(configured({ ...REPLACEMENTS, ...ALLOW }), ENV);
    const env = Object.fromEntries((gateway.env ?? []).map(({ name, value }) => [name, value]));
    assert.doesNotThrow(() => checkedDrain(config, processSettings(env)));
    const slow = parse(text) as { readonly resources: { readonly market_report: { readonly backend: object } } };
    const resources = {
      market_report: {
        ...slow.resources.market_report,
        backend: { ...slow.resources.market_report.backend, timeoutMs: 11_000 },
      },
    };
    const slower = parseConfig(configured({ ...REPLACEMENTS, ...ALLOW, resources }), ENV);
    assert.throws(() => checkedDrain(slower, processSettings(env)), /drain-seconds: "76"/);
  });

  it('names the secrets that the README tells to make', () => {
    const variables = [...text.matchAll(/\$\{([A-Z_]+)\}/g)].map(([, name]) => name);
    const files = [...text.matchAll(/\$\{file:\/run\/agent-commerce\/(\w+)\}/g)].map(([, name]) => name);
    assert.deepEqual(variables.sort(), ['ADMIN_TOKEN', 'MERCHANT_BASE_URL', 'REDIS_URL']);
    assert.deepEqual(files, ['SEALING_KEY']);
    assert.ok(!objects.some(({ kind }) => kind === 'Secret'));
  });

  it('takes every image by a digest, and none that a node could fetch before it is replaced', () => {
    const images = containersOf(podOf(deployment)).map(({ image }) => image);
    assert.equal(images.length, 2);
    for (const image of images) assert.match(image, /^registry\.invalid\/[\w-]+@sha256:0{64}$/);
  });

  it('runs at least three replicas, and spreads them over nodes and zones', () => {
    const { minReplicas, maxReplicas, scaleTargetRef } = specOf<{
      readonly minReplicas: number;
      readonly maxReplicas: number;
      readonly scaleTargetRef: { readonly kind: string; readonly name: string };
    }>('HorizontalPodAutoscaler', 'market-shop');
    assert.deepEqual([minReplicas, scaleTargetRef.kind, scaleTargetRef.name], [3, 'Deployment', 'market-shop']);
    assert.equal((deployment.spec as { readonly replicas?: number }).replicas, undefined);
    const { storage } = parse(text) as { readonly storage: { readonly replicas: number } };
    assert.equal(storage.replicas, maxReplicas);
    const { topologySpreadConstraints, ...pod } = podOf(deployment) as unknown as {
      readonly topologySpreadConstraints: readonly { readonly topologyKey: string }[];
    };
    assert.ok('containers' in pod);
    assert.deepEqual(
      topologySpreadConstraints.map(({ topologyKey }) => topologyKey),
      ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'],
    );
  });

  it('scales by each container, which all ask for CPU', () => {
    const { metrics } = specOf<{
      readonly metrics: readonly {
        readonly type: string;
        readonly containerResource: { readonly name: string; readonly container: string };
      }[];
    }>('HorizontalPodAutoscaler', 'market-shop');
    const containers = containersOf(podOf(deployment));
    assert.deepEqual(
      metrics.map(({ type, containerResource }) => [type, containerResource.container]),
      [
        ['ContainerResource', GATEWAY],
        ['ContainerResource', 'merchant'],
      ],
    );
    for (const { name, resources } of containers) assert.ok(resources?.requests?.['cpu'] !== undefined, name);
  });

  it('closes the way out, but for Redis in private networks', () => {
    const { egress } = specOf<{
      readonly egress: readonly { readonly ports: readonly { readonly port: number }[] }[];
    }>('NetworkPolicy', 'merchant-agents-redis');
    assert.deepEqual(
      egress.flatMap(({ ports }) => ports.map(({ port }) => port)),
      [Number(new URL(ENV.REDIS_URL).port)],
    );
    assert.ok(objects.some(({ metadata }: Manifest) => metadata.name === 'merchant-agents-egress'));
  });
});
