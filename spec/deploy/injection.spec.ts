import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { componentFiles, readManifests, writeYaml } from '../../src/sidecar/injection/component.ts';
import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../src/sidecar/injection/options.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { injectObject, titleOf, type Manifest as Workload } from '../../src/sidecar/injection/workloads.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import { POD_FIXTURES } from '../sidecar/injection/fixtures.ts';
import { kubectl, kustomize } from './kubectl.ts';
import { type Manifest, pick } from './manifest.ts';
import { Development, type Overlay, Production, renderUninjected } from './rendered.ts';

const COMPONENT = fileURLToPath(new URL('../../deploy/components/sidecar', import.meta.url));
const OVERLAYS = fileURLToPath(new URL('../../deploy/overlays', import.meta.url));
const WORKLOADS = fileURLToPath(new URL('../sidecar/injection/fixtures/workloads/shop.yaml', import.meta.url));
const OPT_IN = { 'agent-commerce.dev/inject': 'enabled' };
const PLAIN = { name: 'shop', image: 'registry.example/shop:1', ports: [{ containerPort: 8080 }] };

const ends = new AsyncDisposableStack();
after(() => ends.disposeAsync());

type Files = readonly { readonly name: string; readonly text: string }[];

/** What kustomize makes of the objects with the component, by title. */
async function rendered(
  objects: readonly unknown[],
  component: Files | 'sidecar',
): Promise<Readonly<Record<string, unknown>>> {
  const folder = await temporaryDirectory(ends, 'component-');
  await mkdir(join(folder, 'component'));
  if (component === 'sidecar') cpSync(COMPONENT, join(folder, 'component'), { recursive: true });
  else for (const { name, text } of component) writeFileSync(join(folder, 'component', name), text);
  writeFileSync(join(folder, 'objects.yaml'), objects.map(writeYaml).join('---\n'));
  writeFileSync(join(folder, 'kustomization.yaml'), 'resources: [objects.yaml]\ncomponents: [component]\n');
  return byTitle(readManifests(kustomize(folder)).map(({ object }) => object));
}

function byTitle(objects: readonly unknown[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    (objects as readonly Workload[]).map((object) => {
      const { name } = object['metadata'] as { readonly name: string };
      return [titleOf({ kind: String(object['kind']), name }), object];
    }),
  );
}

/** As injection makes them. */
function injected(objects: readonly unknown[]): Readonly<Record<string, unknown>> {
  return byTitle(objects.map((object) => injectObject(object, USUAL_OPTIONS).object));
}

function generated(objects: readonly unknown[]): Files {
  return componentFiles(
    objects
      .flatMap((object) => injectObject(object, USUAL_OPTIONS).workloads)
      .flatMap(({ injection, ...workload }) =>
        injection.kind === 'injected' ? [{ workload, pod: injection.pod }] : [],
      ),
  );
}

/** A workload of that kind whose pod has these members beside the plain merchant. */
function workload(kind: string, container: object = {}, spec: object = {}, metadata: object = {}): Workload {
  const isJob = kind === 'Job';
  return {
    apiVersion: isJob ? 'batch/v1' : 'apps/v1',
    kind,
    metadata: { name: 'shop', labels: OPT_IN },
    spec: {
      template: {
        metadata: { labels: { app: 'shop' }, ...metadata },
        spec: { ...(isJob ? { restartPolicy: 'Never' } : {}), ...spec, containers: [{ ...PLAIN, ...container }] },
      },
    },
  };
}

describe('the sidecar component', () => {
  const plain = [
    ...['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job'].map((kind) => workload(kind)),
    {
      ...workload(
        'Deployment',
        {
          readinessProbe: { exec: { command: ['/bin/check'] } },
          livenessProbe: { tcpSocket: { port: 8080 } },
          lifecycle: { postStart: { exec: { command: ['/bin/warm'] } } },
        },
        { serviceAccountName: 'shop' },
        { annotations: { 'example.com/team': 'shop' } },
      ),
      metadata: { name: 'rich', labels: OPT_IN },
    },
  ];

  it('makes of every plain workload what injection makes of it', async () => {
    assert.deepEqual(await rendered(plain, 'sidecar'), injected(plain));
  });

  it('stands before init containers and volumes of the workload, and injection leaves it there', async () => {
    const spec = {
      initContainers: [{ name: 'migrate', image: 'registry.example/m:1' }],
      volumes: [{ name: 'data', emptyDir: {} }],
    };
    const [made] = Object.values(await rendered([workload('Deployment', {}, spec)], 'sidecar'));
    const again = injectObject(made, USUAL_OPTIONS).workloads[0]?.injection;
    assert.deepEqual(again?.kind === 'injected' && again.patch, []);
  });

  it('leaves workloads without the label alone', async () => {
    const object = { ...workload('Deployment'), metadata: { name: 'shop' } };
    assert.deepEqual(await rendered([object], 'sidecar'), byTitle([object]));
  });

  const unfit: readonly { readonly why: string; readonly object: Workload; readonly at: RegExp }[] = [
    { why: 'a grace period', object: workload('Deployment', {}, { terminationGracePeriodSeconds: 60 }), at: /Grace/ },
    { why: 'hostNetwork', object: workload('Deployment', {}, { hostNetwork: true }), at: /hostNetwork/ },
    { why: 'another port', object: workload('Deployment', { ports: [{ containerPort: 3000 }] }), at: /containerPort/ },
    { why: 'no port', object: workload('Deployment', { ports: [] }), at: /ports\/0/ },
    ...['livenessProbe', 'readinessProbe', 'startupProbe'].map((member) => ({
      why: `an HTTP ${member}`,
      object: workload('Deployment', { [member]: { httpGet: { port: 8080 } } }),
      at: new RegExp(`use-acg-inject--component/${member}/httpGet`),
    })),
    {
      why: 'a preStop of its own',
      object: workload('Deployment', { lifecycle: { preStop: { sleep: { seconds: 5 } } } }),
      at: /use-acg-inject--component\/lifecycle\/preStop/,
    },
    ...[
      'agent-commerce.dev/upstream-container',
      'agent-commerce.dev/upstream-port',
      'agent-commerce.dev/drain-seconds',
      'kubectl.kubernetes.io/default-container',
      'traffic.sidecar.istio.io/excludeInboundPorts',
      'config.linkerd.io/skip-inbound-ports',
    ].map((key) => ({
      why: `the annotation ${key}`,
      object: workload('Deployment', {}, {}, { annotations: { [key]: '1' } }),
      at: new RegExp(key.replace('/', '~1')),
    })),
    {
      why: 'a pod of its own',
      object: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'shop', labels: OPT_IN },
        spec: { containers: [PLAIN] },
      },
      at: /\/kind/,
    },
  ];
  for (const { why, object, at } of unfit)
    it(`renders nothing for a workload with ${why}, and says where`, async () => {
      await assert.rejects(rendered([object], 'sidecar'), at);
    });
});

describe('a component of acg inject', () => {
  const workloads = readManifests(readFileSync(WORKLOADS, 'utf8')).map(({ object }) => object);
  const fixtures = POD_FIXTURES.filter(({ refused }) => !refused).flatMap(({ name, pod }) => [
    { ...pod, metadata: { ...pod.metadata, name } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: { template: { metadata: { ...pod.metadata, name: undefined, namespace: undefined }, spec: pod.spec } },
    },
  ]);
  // As they come out of a file: without members that are undefined.
  const objects = fixtures.map((object) => parse(writeYaml(object)));

  it('makes what injection makes of a workload of every kind', async () => {
    assert.deepEqual(await rendered(workloads, generated(workloads)), injected(workloads));
  });

  it('makes what injection makes of every fixture, alone and in a Deployment', async () => {
    assert.ok(objects.length >= 40);
    assert.deepEqual(await rendered(objects, generated(objects)), injected(objects));
  });

  it('renders nothing when the workload is not the one for which it was made', async () => {
    const component = generated([workload('Deployment', { readinessProbe: { httpGet: { port: 8080, path: '/a' } } })]);
    for (const changed of [
      workload('Deployment', { readinessProbe: { httpGet: { port: 8080, path: '/b' } } }),
      workload(
        'Deployment',
        { readinessProbe: { httpGet: { port: 8080, path: '/a' } } },
        { terminationGracePeriodSeconds: 5 },
      ),
      workload('Deployment', {
        readinessProbe: { httpGet: { port: 8080, path: '/a' } },
        ports: [{ containerPort: 81 }],
      }),
    ])
      await assert.rejects(rendered([changed], component), /testing value .* failed/);
  });

  it('is written without what others may change: labels and annotations that were there', () => {
    const text = generated([workload('Deployment')])
      .map((file) => file.text)
      .join('');
    assert.doesNotMatch(text, /app: shop/);
  });

  for (const { overlay, merchant } of [
    { overlay: 'dev', merchant: 'merchant/deployment.yaml' },
    { overlay: 'prod', merchant: 'merchant.yaml' },
  ])
    it(`is what overlays/${overlay} has in its folder gateway`, () => {
      const folder = join(OVERLAYS, overlay);
      const objects = readManifests(readFileSync(join(folder, merchant), 'utf8')).map(({ object }) => object);
      const files = readdirSync(join(folder, 'gateway')).sort();
      const wanted = [...generated(objects)].sort((a, b) => (a.name < b.name ? -1 : 1));
      assert.deepEqual(
        files.map((name) => ({ name, text: readFileSync(join(folder, 'gateway', name), 'utf8') })),
        wanted,
        `acg inject --component gateway -f ${merchant} writes it`,
      );
    });
});

function podTemplate(objects: readonly Manifest[]): Pod {
  return pick(objects, 'Deployment', 'market-shop').spec?.template as unknown as Pod;
}

for (const { name, overlay } of [
  { name: 'dev', overlay: new Development() },
  { name: 'prod', overlay: new Production() },
] as const satisfies readonly { readonly name: string; readonly overlay: Overlay }[])
  describe(`the merchant of overlays/${name}`, () => {
    const bare = podTemplate(renderUninjected(name));
    const rendered = podTemplate(overlay.objects);

    it('has probes of its own, and neither hooks nor a gateway', () => {
      const [container] = bare.spec.containers;
      assert.ok(container?.livenessProbe?.httpGet !== undefined && container.readinessProbe?.httpGet !== undefined);
      assert.equal(container.lifecycle, undefined);
      assert.equal(bare.spec.initContainers, undefined);
    });

    it('is rendered exactly as injection makes it, with the image and the configuration of the overlay', () => {
      const config = pick(overlay.objects, 'ConfigMap', 'agent-commerce-gateway-config').metadata.name;
      const secret = overlay.backendPod.volumes?.find((volume) => volume.name === 'agent-commerce-secret')?.secret;
      const injection = injectPod(bare, {
        ...USUAL_OPTIONS,
        image: overlay.gateway.image,
        configMap: config,
        secret: secret?.secretName ?? '',
      });
      assert.ok(injection.kind === 'injected', JSON.stringify(injection));
      assert.deepEqual(rendered, injection.pod);
      assert.deepEqual(injection.warnings, []);
    });
  });

const KUBECTL = kubectl();

/** The pod as the patch library and the types of Kubernetes make it. */
function patched(file: string, patch: unknown): unknown {
  const args = ['patch', '--local', '-f', file, '--type', 'json', '-p', JSON.stringify(patch), '-o', 'json'];
  const { stdout, stderr } = spawnSync(KUBECTL, args, {
    env: { ...process.env, KUBECONFIG: '/dev/null' },
    encoding: 'utf8',
  });
  assert.notEqual(stdout, '', stderr);
  return JSON.parse(stdout);
}

/** Without what decoding and encoding adds: empty members, and the time that no pod has yet. */
function written(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(written);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, member]) => member !== null && !(EMPTY.has(name) && Object.keys(member).length === 0))
      .map(([name, member]) => [name, written(member)]),
  );
}
const EMPTY: ReadonlySet<string> = new Set(['status', 'resources']);

describe('the patch of injection, applied by kubectl', () => {
  for (const { name, pod, file, refused } of POD_FIXTURES)
    if (!refused)
      it(`makes the injected pod of ${name}, with nothing that Kubernetes does not know`, () => {
        const injection = injectPod(pod, USUAL_OPTIONS);
        assert.equal(injection.kind, 'injected');
        if (injection.kind === 'injected')
          assert.deepEqual(written(patched(file, injection.patch)), written(injection.pod));
      });
});
