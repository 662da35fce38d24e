import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import manifestOfPackage from '../../package.json' with { type: 'json' };
import { manifests } from './manifest.ts';
import { Development, GATEWAY } from './rendered.ts';

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
