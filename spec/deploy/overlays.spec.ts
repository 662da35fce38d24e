import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import manifestOfPackage from '../../package.json' with { type: 'json' };
import { kubectl } from './kubectl.ts';
import { containersOf, manifests, missingFrom, podOf } from './manifest.ts';
import { Development, GATEWAY, Production, renderDevelopment } from './rendered.ts';

for (const { overlay, rendered, namespace } of [
  { overlay: 'development', rendered: new Development(), namespace: 'agent-commerce-dev' },
  { overlay: 'production', rendered: new Production(), namespace: 'market-shop' },
])
  describe(`every pod of the ${overlay} overlay`, () => {
    it('conforms to the restricted profile of the Pod Security Standards', () => {
      assert.equal(
        rendered.pick('Namespace', namespace).metadata.labels?.['pod-security.kubernetes.io/enforce'],
        'restricted',
      );
      for (const workload of rendered.workloads) {
        const pod = podOf(workload);
        assert.equal(pod.hostNetwork ?? pod.hostPID ?? false, false);
        assert.deepEqual(
          pod.volumes?.filter(({ hostPath }) => hostPath !== undefined),
          [],
        );
      }
      for (const { name, securityContext } of rendered.containers) {
        const { runAsNonRoot, allowPrivilegeEscalation, capabilities, seccompProfile, privileged } =
          securityContext ?? {};
        assert.deepEqual(
          { runAsNonRoot, allowPrivilegeEscalation, capabilities, seccompProfile, privileged },
          {
            runAsNonRoot: true,
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
            seccompProfile: { type: 'RuntimeDefault' },
            privileged: undefined,
          },
          name,
        );
      }
    });

    it('writes only to its volumes, and its own container never runs as root', () => {
      for (const { name, securityContext } of rendered.containers) {
        assert.equal(securityContext?.readOnlyRootFilesystem, true, name);
        assert.notEqual(securityContext?.runAsUser, 0, name);
      }
    });

    it('takes secrets from files, never from the environment', () => {
      for (const { name, env = [], envFrom } of rendered.containers) {
        assert.equal(envFrom, undefined, name);
        assert.deepEqual(
          env.filter(({ valueFrom }) => JSON.stringify(valueFrom ?? '').includes('secretKeyRef')),
          [],
          name,
        );
      }
    });

    it('mounts directories, which follow a change, and never a single file', () => {
      for (const { volumeMounts = [] } of rendered.containers) {
        assert.deepEqual(
          volumeMounts.filter(({ subPath }) => subPath !== undefined),
          [],
        );
      }
    });

    it('lets the gateway read its secret files without changing the group of the backend’s volumes', () => {
      const secret = rendered.backendPod.volumes?.find(({ name }) => name === 'agent-commerce-secret')?.secret;
      assert.equal(secret?.defaultMode, 0o444);
      const others = containersOf(rendered.backendPod).filter(({ name }) => name !== 'agent-commerce-gateway');
      assert.ok(
        others.every(({ volumeMounts = [] }) => volumeMounts.every(({ name }) => name !== 'agent-commerce-secret')),
      );
    });

    it('takes no image by a tag that moves', () => {
      for (const { name, image } of rendered.containers) {
        assert.match(image, /(:[\w.-]+|@sha256:[0-9a-f]{64})$/, name);
        assert.doesNotMatch(image, /:latest$/, name);
      }
    });

    it('has only fields that Kubernetes knows, in every pod and Service', () => {
      for (const object of rendered.objects) {
        const isService = object.kind === 'Service';
        if (!isService && object.spec?.template === undefined) continue;
        const selector = 'agent-commerce.dev/injected=true';
        const args = isService ? ['set', 'selector', '--local', selector] : ['set', 'env', '--local', 'SPEC=1'];
        const { stdout, stderr } = spawnSync(kubectl(), [...args, '-f', '-', '-o', 'json'], {
          input: JSON.stringify(object),
          env: { ...process.env, KUBECONFIG: '/dev/null' },
          encoding: 'utf8',
        });
        assert.notEqual(stdout, '', stderr);
        const known = missingFrom(JSON.parse(stdout), object).filter(
          (path) => !(isService && path.startsWith('$.spec.selector')),
        );
        assert.deepEqual(known, [], `${object.kind}/${object.metadata.name}`);
      }
    });
  });

const dev = new Development();

const management = (path: string) => ({ path, port: 8403, scheme: 'HTTP' });
const hook = (path: string) => ({ ...management(path), httpHeaders: [{ name: 'Agent-Commerce-Hook', value: '1' }] });
const SUCCESS = { successThreshold: 1 };

describe('the sidecar', () => {
  const shape: readonly { readonly rule: string; readonly of: () => unknown; readonly is: unknown }[] = [
    {
      rule: 'is a native sidecar, last to start before the backend',
      of: () => dev.backendPod.initContainers?.at(-1)?.name,
      is: 'agent-commerce-gateway',
    },
    { rule: 'ends after the backend', of: () => dev.gateway.restartPolicy, is: 'Always' },
    { rule: 'serves', of: () => dev.gateway.args, is: ['serve'] },
    {
      rule: 'names its two ports',
      of: () => dev.gateway.ports?.map(({ name, containerPort }) => [name, containerPort]),
      is: [
        ['agent-http', 8402],
        ['agent-admin', 8403],
      ],
    },
    {
      rule: 'gets a minute to start, and does not wait for the backend',
      of: () => dev.gateway.startupProbe,
      is: { httpGet: management('/health'), periodSeconds: 1, timeoutSeconds: 1, failureThreshold: 60, ...SUCCESS },
    },
    {
      rule: 'is restarted only when it does not answer at all',
      of: () => dev.gateway.livenessProbe,
      is: { httpGet: management('/health'), periodSeconds: 10, timeoutSeconds: 2, failureThreshold: 3, ...SUCCESS },
    },
    {
      rule: 'leaves the endpoints when it cannot serve, and not when a facilitator is away',
      of: () => dev.gateway.readinessProbe,
      is: { httpGet: management('/routing'), periodSeconds: 2, timeoutSeconds: 2, failureThreshold: 2, ...SUCCESS },
    },
    { rule: 'drains before it stops', of: () => dev.gateway.lifecycle?.preStop?.httpGet, is: hook('/drain') },
    {
      rule: 'keeps the backend running until the paid calls are done',
      of: () => dev.backend.lifecycle?.preStop?.httpGet,
      is: hook('/release'),
    },
    {
      rule: 'asks the backend in place of the kubelet, which cannot reach its loopback',
      of: () => [dev.backend.livenessProbe?.httpGet, dev.backend.readinessProbe?.httpGet],
      is: [management('/app-probe/liveness'), management('/app-probe/readiness')],
    },
    {
      rule: 'has time for propagation, the longest call, a settlement and the backend',
      of: () => dev.backendPod.terminationGracePeriodSeconds,
      is: 5 + 10 + 60 + 30,
    },
    {
      rule: 'asks for what it needs, with no CPU limit',
      of: () => dev.gateway.resources,
      is: { requests: { cpu: '50m', memory: '96Mi' }, limits: { memory: '192Mi' } },
    },
    {
      rule: 'gets its secrets as files',
      of: () => dev.gateway.env?.filter(({ name }) => /TOKEN|REDIS|SECRET|KEY/.test(name)),
      is: [
        { name: 'ADMIN_TOKEN_FILE', value: '/run/agent-commerce/ADMIN_TOKEN' },
        { name: 'REDIS_URL_FILE', value: '/run/agent-commerce/REDIS_URL' },
      ],
    },
    {
      rule: 'reads its configuration from the mounted directory',
      of: () => dev.gateway.env?.find(({ name }) => name === 'AGENT_COMMERCE_CONFIG')?.value,
      is: '/etc/agent-commerce/gateway.yaml',
    },
    {
      rule: 'sees no service-account token',
      of: () =>
        dev.gateway.volumeMounts?.find(({ mountPath }) => mountPath === '/var/run/secrets/kubernetes.io/serviceaccount')
          ?.name,
      is: 'agent-commerce-no-token',
    },
  ];
  for (const { rule, of, is } of shape) it(rule, () => assert.deepEqual(of(), is));

  it('is the image of this release unless an overlay names another one', () => {
    const patch = readFileSync(new URL('../../deploy/components/sidecar/sidecar.yaml', import.meta.url), 'utf8');
    const [workload] = manifests(patch);
    assert.equal(workload?.spec?.template?.spec.initContainers?.[0]?.image, `${GATEWAY}:${manifestOfPackage.version}`);
  });
});

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
