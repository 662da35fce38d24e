import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { readManifests } from '../../../src/sidecar/injection/component.ts';
import { injectPod } from '../../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';
import type { Pod } from '../../../src/sidecar/injection/pod.ts';
import { injectObject, type Manifest, titleOf, workloadWarnings } from '../../../src/sidecar/injection/workloads.ts';

const SHOP = readManifests(readFileSync(new URL('fixtures/workloads/shop.yaml', import.meta.url), 'utf8')).map(
  ({ object }) => object,
);
const ENABLED = { 'agent-commerce.dev/inject': 'enabled' };
const TEMPLATE = { spec: { containers: [{ name: 'shop', ports: [{ containerPort: 8080 }] }] } };

function deployment(labels: object, template: object = TEMPLATE): object {
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'shop', labels }, spec: { template } };
}

describe('injection of workloads', () => {
  it('finds the pods of every kind that keeps one, by the label of the pod or of the workload', () => {
    const found = SHOP.flatMap((object) => injectObject(object, USUAL_OPTIONS).workloads);
    assert.deepEqual(found.map(titleOf), [
      'Deployment/web',
      'StatefulSet/ledger',
      'DaemonSet/edge',
      'ReplicaSet/old',
      'Job/import',
      'CronJob/nightly.report',
      'Pod/single',
    ]);
    for (const { injection, pod } of found) assert.deepEqual(injection, injectPod(pod, USUAL_OPTIONS));
  });

  it('puts the injected pod where the pod was, and keeps the order of what was there', () => {
    const object = {
      kind: 'CronJob',
      apiVersion: 'batch/v1',
      spec: { schedule: '0 3 * * *', jobTemplate: { spec: { template: TEMPLATE, backoffLimit: 2 } }, suspend: false },
      metadata: { labels: ENABLED, name: 'nightly' },
    };
    const made = injectObject(object, USUAL_OPTIONS).object as typeof object;
    assert.deepEqual(Object.keys(made), Object.keys(object));
    assert.deepEqual(Object.keys(made.spec), Object.keys(object.spec));
    const injection = injectPod(TEMPLATE as Pod, USUAL_OPTIONS);
    assert.deepEqual(made.spec.jobTemplate.spec.template, injection.kind === 'injected' && injection.pod);
    assert.equal(made.spec.jobTemplate.spec.backoffLimit, 2);
  });

  it('reads lists inside lists', () => {
    const list = { kind: 'List', items: [{ kind: 'DeploymentList', items: [deployment(ENABLED)] }, deployment({})] };
    const { object, workloads } = injectObject(list, USUAL_OPTIONS);
    assert.equal(workloads.length, 1);
    assert.deepEqual(object, {
      ...list,
      items: [
        { kind: 'DeploymentList', items: [injectObject(deployment(ENABLED), USUAL_OPTIONS).object] },
        deployment({}),
      ],
    });
  });

  it('gives back the very object where nothing asks for the gateway', () => {
    const others = [
      deployment({}),
      deployment({ 'agent-commerce.dev/inject': 'disabled' }),
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 'shop', labels: ENABLED } },
      'text',
      null,
    ];
    for (const object of others) {
      const passed = injectObject(object, USUAL_OPTIONS);
      assert.equal(passed.object, object);
      assert.deepEqual([passed.workloads, passed.doubts], [[], []]);
    }
  });

  it('doubts labels that look like the one that asks', () => {
    const doubtsOf = (labels: object): readonly string[] => injectObject(deployment(labels), USUAL_OPTIONS).doubts;
    assert.deepEqual(doubtsOf({ 'agent-commerce.dev/inject': 'true' }), [
      'Deployment/shop has the label "agent-commerce.dev/inject": "true"; only agent-commerce.dev/inject: enabled asks for the gateway',
    ]);
    assert.equal(doubtsOf({ 'agent-commerce.dev/injected': 'true' }).length, 1);
  });

  describe('names a labelled pod of a kind that it does not know', () => {
    const pod = { metadata: { labels: ENABLED }, spec: { containers: [{ name: 'web', image: 'shop:1' }] } };
    const ONE = 'carries the label, and its kind is not one that this command changes';
    for (const [apiVersion, kind, members, path] of [
      ['argoproj.io/v1alpha1', 'Rollout', { spec: { template: pod } }, 'spec.template'],
      ['apps.openshift.io/v1', 'DeploymentConfig', { spec: { template: pod } }, 'spec.template'],
      ['v1', 'ReplicationController', { spec: { template: pod } }, 'spec.template'],
      ['v1', 'PodTemplate', { template: pod }, 'template'],
      ['apps.kruise.io/v1alpha1', 'CloneSet', { spec: { template: pod } }, 'spec.template'],
      ['serving.knative.dev/v1', 'Service', { spec: { template: pod } }, 'spec.template'],
      ['batch.volcano.sh/v1alpha1', 'Job', { spec: { tasks: [{ template: pod }] } }, undefined],
    ] as const)
      it(`${kind} of ${apiVersion}`, () => {
        const object = { apiVersion, kind, metadata: { name: 'shop' }, ...members };
        const advice = path === undefined ? '' : `write --pod-path ${kind}=${path}, or `;
        const doubt = `${kind}/shop ${ONE}: ${advice}use the webhook`;
        const passed = injectObject({ kind: 'List', items: [object] }, USUAL_OPTIONS);
        assert.deepEqual([passed.workloads, passed.doubts], [[], [doubt]]);
        const quiet = JSON.parse(JSON.stringify(object).replaceAll('"enabled"', '"disabled"')) as unknown;
        assert.deepEqual(injectObject(quiet, USUAL_OPTIONS).doubts, []);
        if (path === undefined) return;
        const [workload] = injectObject(object, USUAL_OPTIONS, { [kind]: path.split('.') }).workloads;
        assert.equal(workload?.injection.kind, 'injected');
      });
  });

  it('refuses a workload without a pod', () => {
    const [workload] = injectObject({ ...deployment(ENABLED), spec: {} }, USUAL_OPTIONS).workloads;
    assert.deepEqual(workload?.injection, { kind: 'refused', message: 'pod must be a mapping' });
  });
});

const CONFIG = 'agent-commerce-gateway-config';
const SECRET = 'agent-commerce-gateway-secret';
/** How a configuration takes the address from the pod. */
const OWN = '$' + '{MERCHANT_BASE_URL}';
const SQLITE = 'version: 1\nstorage:\n  sqlite: { path: /data/gateway.db }\n';

function object(kind: string, name: string, members: object = {}, namespace?: string): Manifest {
  return { kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) }, ...members };
}

function shop(spec: object = {}, kind = 'Deployment'): Manifest {
  const template = {
    metadata: { labels: { app: 'shop', 'agent-commerce.dev/inject': 'enabled' } },
    spec: {
      containers: [
        {
          name: 'shop',
          ports: [
            { name: 'http', containerPort: 8080 },
            { name: 'admin', containerPort: 9000 },
          ],
        },
      ],
    },
  };
  return { apiVersion: 'apps/v1', ...object(kind, 'shop', { spec: { ...spec, template } }) };
}

function service(spec: object): Manifest {
  return object('Service', 'web', { spec: { selector: { app: 'shop' }, ...spec } });
}

function warningsFor(workload: Manifest, beside: readonly Manifest[]): readonly string[] {
  const [found] = injectObject(workload, USUAL_OPTIONS).workloads;
  assert.ok(found?.injection.kind === 'injected');
  return workloadWarnings(found, found.injection.pod, [workload, ...beside], USUAL_OPTIONS);
}

describe('warnings about what stands beside a workload', () => {
  const past = (port: string): readonly string[] => [
    `Service web publishes port ${port} of container shop past the gateway: its callers do not pay; write targetPort: agent-http`,
  ];

  it("name a Service that leads to the merchant's own port, by number, by name or by its own port", () => {
    assert.deepEqual(warningsFor(shop(), [service({ ports: [{ port: 80, targetPort: 8080 }] })]), past('"8080"'));
    assert.deepEqual(warningsFor(shop(), [service({ ports: [{ port: 80, targetPort: 'admin' }] })]), past('"admin"'));
    assert.deepEqual(warningsFor(shop(), [service({ ports: [{ port: 8080 }] })]), past('"8080"'));
  });

  it('name no Service of the gateway, of other pods or of another namespace', () => {
    assert.deepEqual(
      warningsFor(shop(), [
        service({ ports: [{ port: 80, targetPort: 'agent-http' }] }),
        service({ ports: [{ port: 80, targetPort: 8080 }], selector: { app: 'other' } }),
        service({ ports: [{ port: 80, targetPort: 8080 }], selector: {} }),
        service({ ports: [{ port: 80, targetPort: 8080 }], selector: undefined }),
        { ...service({ ports: [{ port: 8080 }] }), metadata: { name: 'web', namespace: 'elsewhere' } },
      ]),
      [],
    );
  });

  it('name a ConfigMap or a Secret that is not among those of the input', () => {
    assert.deepEqual(warningsFor(shop(), [object('ConfigMap', 'other'), object('Secret', 'other')]), [
      `ConfigMap ${CONFIG} is not in the input; the gateway does not start without it`,
      `Secret ${SECRET} is not in the input; the gateway does not start without it`,
    ]);
  });

  it('name keys that the gateway reads and that are not there', () => {
    const config = object('ConfigMap', CONFIG, { data: { 'gateway.json': '{}' } });
    const secret = object('Secret', SECRET, { stringData: { ADMIN_TOKEN: 'x' } });
    assert.deepEqual(warningsFor(shop(), [config, secret]), [
      `ConfigMap ${CONFIG} has no key gateway.yaml, which the gateway reads`,
      `Secret ${SECRET} has no key REDIS_URL, which the gateway reads`,
    ]);
  });

  it('know makers of Secrets, and say nothing where the input holds none', () => {
    assert.deepEqual(warningsFor(shop(), [object('ExternalSecret', SECRET)]), []);
    assert.deepEqual(warningsFor(shop(), [object('ConfigMap', CONFIG, {}, 'elsewhere')]), []);
  });

  it('say that the pod replaces the address of the merchant, with its path', () => {
    const says = (url: string): Manifest =>
      object('ConfigMap', CONFIG, { data: { 'gateway.yaml': `backend: { baseUrl: "${url}" }` } });
    for (const url of ['http://127.0.0.1:3000', 'http://127.0.0.1:8080/shop', `${OWN}/shop`])
      assert.deepEqual(warningsFor(shop(), [says(url)]), [
        `ConfigMap ${CONFIG} says backend.baseUrl "${url}", and the pod sets MERCHANT_BASE_URL, which replaces all of it with http://127.0.0.1:8080; another port is for agent-commerce.dev/upstream-port`,
      ]);
    for (const url of ['http://127.0.0.1:8080', 'http://127.0.0.1:8080/', OWN])
      assert.deepEqual(warningsFor(shop(), [says(url)]), []);
  });

  describe('about a SQLite file', () => {
    const config = object('ConfigMap', CONFIG, { data: { 'gateway.yaml': SQLITE } });
    const scaler = object('HorizontalPodAutoscaler', 'scaler', {
      spec: { scaleTargetRef: { kind: 'Deployment', name: 'shop' }, maxReplicas: 3 },
    });

    it("say that several pods do not see each other's spent proofs", () => {
      for (const [workload, beside, why] of [
        [
          shop({ replicas: 2 }),
          [config],
          /^Deployment shop has 2 replicas, and ConfigMap .* in each; use storage.redis$/,
        ],
        [shop({ replicas: 1 }), [config, scaler], /^HorizontalPodAutoscaler scaler may run several pods, and/],
        [shop({}, 'DaemonSet'), [config], /^DaemonSet shop runs a pod on each node, and/],
      ] as const) {
        const [warning, ...more] = warningsFor(workload, beside);
        assert.match(warning ?? '', why);
        assert.deepEqual(more, []);
      }
    });

    it('say nothing about one pod, about Redis, or about a file that is no YAML', () => {
      const redis = object('ConfigMap', CONFIG, { data: { 'gateway.yaml': 'storage: { redis: { url: x } }' } });
      const broken = object('ConfigMap', CONFIG, { data: { 'gateway.yaml': 'storage: [' } });
      assert.deepEqual(warningsFor(shop({ replicas: 1 }), [config]), []);
      assert.deepEqual(warningsFor(shop({ replicas: 2 }), [redis]), []);
      assert.deepEqual(warningsFor(shop({ replicas: 2 }), [broken]), []);
    });
  });
});
