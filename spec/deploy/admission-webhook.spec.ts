import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Ending, terminate } from '../../tools/local-world/child.ts';
import { bytesOf, RECORDED_POD, reviewOf } from '../sidecar/injector/reviews.ts';
import { askOver, secretOf } from '../sidecar/injector/running-injector.ts';
import { createAuthority } from '../support/certificates.ts';
import { kubectl, kustomize } from './kubectl.ts';
import { type Manifest, manifests, pick, podOf } from './manifest.ts';

const WEBHOOK = fileURLToPath(new URL('../../deploy/admission/webhook', import.meta.url));
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const NAME = 'agent-commerce-injector';
const NAMESPACE = 'agent-commerce-system';
/** The name that API servers ask for. */
const HOST = `${NAME}.${NAMESPACE}.svc`;
const STOP_GRACE_MS = 10_000;

interface Webhook {
  readonly clientConfig: {
    readonly service: {
      readonly name: string;
      readonly namespace: string;
      readonly path: string;
      readonly port: number;
    };
    readonly caBundle?: string;
  };
  readonly rules: readonly object[];
  readonly objectSelector: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly namespaceSelector: { readonly matchExpressions: readonly { readonly values: readonly string[] }[] };
  readonly [field: string]: unknown;
}

/** Parts of objects that only this folder has. */
type Rendered = Manifest & {
  readonly metadata: { readonly namespace?: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly webhooks?: readonly Webhook[];
  readonly spec?: {
    readonly egress?: readonly object[];
    readonly policyTypes?: readonly string[];
    readonly secretName?: string;
    readonly dnsNames?: readonly string[];
    readonly duration?: string;
    readonly isCA?: boolean;
  };
};

const work = mkdtempSync(join(tmpdir(), 'webhook-'));
after(() => rmSync(work, { recursive: true, force: true }));
const objects: readonly Rendered[] = manifests(kustomize(WEBHOOK));
const webhook = webhookOf(objects);

function webhookOf(rendered: readonly Rendered[]): Webhook {
  const [only, ...more] = rendered.flatMap(({ webhooks = [] }) => webhooks);
  assert.ok(only !== undefined && more.length === 0, 'one webhook');
  return only;
}

describe('the admission webhook', () => {
  const deployment = pick(objects, 'Deployment', NAME);
  const pod = podOf(deployment);
  const [container] = pod.containers;
  assert.ok(container !== undefined);

  it('has the fields that its safety stands on', () => {
    const { clientConfig, rules, objectSelector, namespaceSelector, ...fields } = webhook;
    assert.deepEqual(fields, {
      name: 'inject.agent-commerce.dev',
      admissionReviewVersions: ['v1'],
      failurePolicy: 'Fail',
      reinvocationPolicy: 'IfNeeded',
      matchPolicy: 'Equivalent',
      sideEffects: 'None',
      timeoutSeconds: 5,
    });
    assert.deepEqual(rules, [
      { operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], scope: 'Namespaced' },
    ]);
    assert.deepEqual(objectSelector, { matchLabels: { 'agent-commerce.dev/inject': 'enabled' } });
    assert.deepEqual(namespaceSelector.matchExpressions, [
      {
        key: 'kubernetes.io/metadata.name',
        operator: 'NotIn',
        values: ['kube-system', 'kube-node-lease', 'kube-public', NAMESPACE],
      },
    ]);
    assert.deepEqual([clientConfig.service.name, clientConfig.service.namespace], [NAME, NAMESPACE]);
  });

  it('calls a port of the Service that leads to the port of the injector', () => {
    const service = pick(objects, 'Service', NAME);
    const { selector, ports = [] } = service.spec ?? {};
    const { targetPort } = ports.find(({ port }) => port === webhook.clientConfig.service.port) ?? {};
    assert.ok(container.ports?.some(({ containerPort }) => containerPort === targetPort));
    assert.deepEqual(selector, deployment.spec?.template?.metadata.labels);
  });

  it('does without the Kubernetes API: no role, no token, nothing goes out', () => {
    const kinds = new Set(objects.map(({ kind }) => kind));
    for (const kind of ['Role', 'ClusterRole', 'RoleBinding', 'ClusterRoleBinding']) assert.ok(!kinds.has(kind), kind);
    assert.equal(pick(objects, 'ServiceAccount', NAME).automountServiceAccountToken, false);
    assert.equal((pod as { automountServiceAccountToken?: boolean }).automountServiceAccountToken, false);
    const { egress, policyTypes } = (pick(objects, 'NetworkPolicy', NAME) as Rendered).spec ?? {};
    assert.deepEqual([egress, policyTypes], [[], ['Ingress', 'Egress']]);
  });

  it('conforms to the restricted profile, which its namespace enforces', () => {
    const { labels } = pick(objects, 'Namespace', NAMESPACE).metadata;
    assert.equal(labels?.['pod-security.kubernetes.io/enforce'], 'restricted');
    assert.deepEqual(container.securityContext, {
      runAsNonRoot: true,
      runAsUser: 65532,
      runAsGroup: 65532,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    });
    assert.doesNotMatch(container.image, /:latest$|\/[^:@]*$/);
  });

  it('stands twice, and keeps one of them', () => {
    const { replicas, strategy } = deployment.spec as { replicas?: number; strategy?: { rollingUpdate: object } };
    assert.equal(replicas, 2);
    assert.deepEqual(strategy?.rollingUpdate, { maxUnavailable: 0, maxSurge: 1 });
    const { minAvailable } = pick(objects, 'PodDisruptionBudget', NAME).spec as { minAvailable?: number };
    assert.equal(minAvailable, 1);
  });

  it('is everything in its own namespace, or of the whole cluster', () => {
    const clusterWide = /^(?:Namespace|MutatingWebhookConfiguration|ValidatingAdmissionPolicy(?:Binding)?)$/;
    for (const { kind, metadata } of objects)
      assert.equal(metadata.namespace, clusterWide.test(kind) ? undefined : NAMESPACE, `${kind}/${metadata.name}`);
  });

  it('has only fields that Kubernetes knows', () => {
    const { stdout, stderr } = decoded(deployment);
    assert.notEqual(stdout, '', stderr);
    const read = JSON.parse(stdout) as Manifest;
    assert.deepEqual(
      podOf(read).containers.map(({ env, ...rest }) => rest),
      pod.containers.map(({ env, ...rest }) => rest),
    );
    assert.deepEqual(podOf(read).volumes, pod.volumes);
  });
});

/** What the types of Kubernetes make of an object, or why they refuse it. */
function decoded(object: object) {
  return spawnSync(kubectl(), ['set', 'env', '--local', 'SPEC=1', '-f', '-', '-o', 'json'], {
    input: JSON.stringify(object),
    env: { ...process.env, KUBECONFIG: '/dev/null' },
    encoding: 'utf8',
  });
}

describe('the certificates of the admission webhook', () => {
  it('are those of cert-manager, which fills the configuration and the mounted Secret', () => {
    assert.equal(webhook.clientConfig.caBundle, undefined);
    const { annotations } = (pick(objects, 'MutatingWebhookConfiguration', NAME) as Rendered).metadata;
    assert.deepEqual(annotations, { 'cert-manager.io/inject-ca-from': `${NAMESPACE}/${NAME}` });
    const leaf = pick(objects, 'Certificate', NAME) as Rendered;
    const { volumes = [] } = podOf(pick(objects, 'Deployment', NAME));
    assert.ok(volumes.some(({ secret }) => secret?.secretName === leaf.spec?.secretName));
    assert.ok(leaf.spec?.dnsNames?.includes(HOST));
    const authority = pick(objects, 'Certificate', `${NAME}-authority`) as Rendered;
    assert.deepEqual([authority.spec?.isCA, authority.spec?.duration], [true, '43800h']);
  });

  it('serve with the rendered arguments and options: an injector answers, and ends with 0', async () => {
    const mounts: Readonly<Record<string, string>> = {
      '/etc/agent-commerce': join(work, 'options'),
      '/run/agent-commerce': join(work, 'tls'),
    };
    const authority = createAuthority('cert-manager');
    mkdirSync(join(work, 'tls'));
    for (const [name, text] of Object.entries(secretOf(authority.issue(HOST))))
      writeFileSync(join(work, 'tls', name), text);

    mkdirSync(join(work, 'options'));
    const parameters = Object.entries(pick(objects, 'ConfigMap', 'agent-commerce-injection').data ?? {});
    for (const [key, value] of parameters) writeFileSync(join(work, 'options', key), value);
    const [container] = podOf(pick(objects, 'Deployment', NAME)).containers;
    const args = (container?.args ?? []).map((arg) =>
      Object.entries(mounts)
        .reduce((word, [mount, directory]) => word.replace(mount, directory), arg)
        .replace('$(POD_NAMESPACE)', NAMESPACE),
    );
    const here = ['--host', '127.0.0.1', '--port', '0', '--management-port', '0', '--drain-seconds', '0'];
    const child = spawn(process.execPath, [MAIN, ...args, ...here], { stdio: ['ignore', 'pipe', 'inherit'] });
    let ending: Ending | undefined;
    try {
      const { port } = await listening(child.stdout);
      const place = { host: '127.0.0.1', port, servername: HOST, ca: authority.certificate };
      const { path } = webhook.clientConfig.service;
      const { status, document } = await askOver({ ...place, path }, bytesOf(reviewOf({}, RECORDED_POD)));
      assert.deepEqual([status, document.response?.allowed], [200, true]);
      const patch = Buffer.from(document.response?.patch ?? '', 'base64').toString();
      assert.match(patch, /"image":"agent-commerce-gateway:1\.0\.0"/);
    } finally {
      ending = await terminate(child, STOP_GRACE_MS);
    }
    assert.deepEqual(ending, { code: 0, signal: null });
  });
});

/** The line of the log that tells the ports. */
async function listening(output: NodeJS.ReadableStream): Promise<{ readonly port: number }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ readonly port: number }>();
  const lines = createInterface({ input: output });
  lines.on('line', (line) => {
    if (line.includes('injector listening')) resolve(JSON.parse(line));
  });
  lines.once('close', () => reject(new Error('the injector ended')));
  return promise;
}
