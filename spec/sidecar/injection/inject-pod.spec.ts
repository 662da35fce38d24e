import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Injection, injectPod } from '../../../src/sidecar/injection/inject-pod.ts';
import { USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';
import type { Container, Pod } from '../../../src/sidecar/injection/pod.ts';
import { POD_FIXTURES } from './fixtures.ts';

const SHOP: Container = { name: 'shop', image: 'shop:1', ports: [{ name: 'http', containerPort: 8080 }] };

function podOf(container: Partial<Container> = {}, spec: Partial<Pod['spec']> = {}, annotations = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'shop', annotations },
    spec: { containers: [{ ...SHOP, ...container }], ...spec },
  };
}

function injected(pod: Pod): Extract<Injection, { kind: 'injected' }> {
  const injection = injectPod(pod, USUAL_OPTIONS);
  assert.equal(injection.kind, 'injected', injection.kind === 'refused' ? injection.message : '');
  return injection as Extract<Injection, { kind: 'injected' }>;
}

/** The environment of the gateway as the kubelet passes it on. */
function environmentOf(pod: Pod): Readonly<Record<string, string>> {
  const gateway = pod.spec.initContainers?.find(({ name }) => name === 'agent-commerce-gateway');
  return Object.fromEntries((gateway?.env ?? []).map(({ name, value = '' }) => [name, value.replaceAll('$$', '$')]));
}

describe('injectPod', () => {
  it('appends a native sidecar and raises the grace period', () => {
    const { pod } = injected(podOf({}, { initContainers: [{ name: 'migrate' }], terminationGracePeriodSeconds: 60 }));
    assert.deepEqual(
      pod.spec.initContainers?.map(({ name, restartPolicy }) => [name, restartPolicy]),
      [
        ['migrate', undefined],
        ['agent-commerce-gateway', 'Always'],
      ],
    );
    assert.equal(pod.spec.terminationGracePeriodSeconds, 135);
  });

  it('hands the HTTP probes and the preStop of the merchant to the gateway', () => {
    const { pod } = injected(
      podOf({
        livenessProbe: { httpGet: { path: '/live?$(A)$$', port: 'http' }, periodSeconds: 3 },
        lifecycle: { preStop: { httpGet: { port: 9000, scheme: 'HTTPS', httpHeaders: [{ name: 'A', value: 'b' }] } } },
      }),
    );
    assert.deepEqual(pod.spec.containers[0]?.livenessProbe, {
      httpGet: { path: '/app-probe/liveness', port: 8403, scheme: 'HTTP' },
      periodSeconds: 3,
    });
    const environment = environmentOf(pod);
    assert.equal(environment['GATEWAY_APP_PROBE_LIVENESS'], 'http://127.0.0.1:8080/live?$(A)$$');
    assert.equal(environment['GATEWAY_APP_PRESTOP'], 'https://127.0.0.1:9000/');
    assert.equal(environment['GATEWAY_APP_PRESTOP_HEADERS'], 'A: b');
  });

  it('changes nothing the second time', () => {
    const { pod } = injected(podOf({ lifecycle: { preStop: { sleep: { seconds: 5 } } } }));
    const again = injected(pod);
    assert.deepEqual(again.pod, pod);
    assert.deepEqual(again.patch, []);
  });

  it('rebuilds its container from the options, and keeps what others added to it', () => {
    const { pod } = injected(podOf());
    const changed = withGateway(pod, (gateway) => ({
      ...gateway,
      image: 'registry.example/other:1',
      args: ['healthcheck'],
      securityContext: { privileged: true },
      resources: { requests: { cpu: '4', memory: '4Gi' }, limits: { memory: '8Gi' } },
      env: [...(gateway.env ?? []).slice(3), { name: 'TZ', value: 'UTC' }],
      volumeMounts: [{ name: 'data', mountPath: '/data' }],
    }));
    assert.deepEqual(
      injected(changed).pod,
      withGateway(pod, (gateway) => ({
        ...gateway,
        env: [...(gateway.env ?? []), { name: 'TZ', value: 'UTC' }],
        volumeMounts: [...(gateway.volumeMounts ?? []), { name: 'data', mountPath: '/data' }],
      })),
    );
  });

  const gatewayWith = (parts: Partial<Container>): Injection => {
    const { pod } = injected(podOf());
    const joined = (gateway: Container): Container => ({
      ...gateway,
      env: [...(gateway.env ?? []), ...(parts.env ?? [])],
      volumeMounts: [...(gateway.volumeMounts ?? []), ...(parts.volumeMounts ?? [])],
    });
    return injectPod(withGateway(pod, joined), USUAL_OPTIONS);
  };

  it('refuses a gateway with variables that change what its image runs or whom it asks', () => {
    for (const name of [
      ...['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS', 'LD_PRELOAD', 'SSL_CERT_FILE', 'OPENSSL_CONF', 'PATH'],
      ...['HTTPS_PROXY', 'https_proxy', 'NO_PROXY'],
    ])
      assert.deepEqual(gatewayWith({ env: [{ name, value: 'x' }] }), {
        kind: 'refused',
        message: `container agent-commerce-gateway has variable ${name}, which could change what its image runs or whom it asks; remove it`,
      });
    for (const name of [
      'TZ',
      'MY_NODE_NAME',
      'OLD_',
      'PROXY',
      'ISTIO_META_PROXY_CONFIG',
      'MY_PATH',
      'AGENT_COMMERCE_CONFIG',
    ])
      assert.equal(gatewayWith({ env: [{ name, value: 'x' }] }).kind, 'injected', name);
  });

  it('refuses a gateway with mounts over its own files, above them or below', () => {
    for (const mountPath of [
      ...['/', '', '.', '/etc', '/run', '/var', '/var/run', '/var/run/secrets', '/run/secrets/kubernetes.io'],
      ...[
        '/app',
        'app',
        '/app/',
        '//app',
        '/./app/chunks',
        '/x/../app',
        '..',
        '/nodejs/bin/node',
        '/usr/lib',
        '/lib64',
      ],
      ...['/etc/agent-commerce/', '/etc//agent-commerce', '/etc/agent-commerce/gateway.yaml', '/etc/ld.so.preload'],
      ...[
        '/run/agent-commerce/ADMIN_TOKEN',
        '/var/run/agent-commerce',
        '/run/secrets/kubernetes.io/serviceaccount/token',
      ],
    ])
      assert.deepEqual(gatewayWith({ volumeMounts: [{ name: 'x', mountPath }] }), {
        kind: 'refused',
        message: `container agent-commerce-gateway has a mount at ${mountPath}, over files of the gateway or with .. in it; use another path`,
      });
    for (const mountPath of [
      ...['/application', '/data/app', '/etc/ssl/extra', '/etc/agent-commerce-more', '/var/run/secrets/istio'],
      ...['/vault/secrets', '/run/agent', '/tmp', '/x/..data', '/libexec'],
    ])
      assert.equal(gatewayWith({ volumeMounts: [{ name: 'x', mountPath }] }).kind, 'injected', mountPath);
  });

  it('keeps pulling the image always where the cluster wrote that', () => {
    const { pod } = injected(podOf());
    const pulled = (imagePullPolicy: string): Pod => withGateway(pod, (gateway) => ({ ...gateway, imagePullPolicy }));
    assert.deepEqual(injected(pulled('Always')).patch, []);
    assert.deepEqual(injected(pulled('Never')).pod, pod);
  });

  it('tells the first unknown annotations one by one, and how many more there are', () => {
    const many = Object.fromEntries(
      Array.from({ length: 33_000 }, (_, index) => [`agent-commerce.dev/drain-second-${index}`, '1']),
    );
    const { warnings } = injected(podOf({}, {}, many));
    assert.equal(warnings.length, 9);
    assert.match(warnings[7] ?? '', /^annotation "agent-commerce.dev\/drain-second-7" is not read; did you mean /);
    assert.equal(warnings[8], '32992 more annotations of agent-commerce.dev/ are not read');
    const eight = Object.fromEntries(Object.entries(many).slice(0, 8));
    assert.equal(injected(podOf({}, {}, eight)).warnings.length, 8);
  });

  it('takes no unnamed port for the one that an empty name names', () => {
    for (const port of [{ containerPort: 8080 }, { name: '', containerPort: 8080 }]) {
      const injection = injectPod(
        podOf({ ports: [port] }, {}, { 'agent-commerce.dev/upstream-port': '' }),
        USUAL_OPTIONS,
      );
      assert.match(injection.kind === 'refused' ? injection.message : '', /upstream-port names port ""/);
    }
  });

  it('never lowers the grace period', () => {
    const { pod } = injected(podOf({}, { terminationGracePeriodSeconds: 60 }));
    const shorter = {
      ...pod,
      metadata: { ...pod.metadata, annotations: { 'agent-commerce.dev/drain-seconds': '10' } },
    };
    assert.equal(injected(shorter).pod.spec.terminationGracePeriodSeconds, 135);
    const raised = { ...pod, spec: { ...pod.spec, terminationGracePeriodSeconds: 900 } };
    assert.equal(injected(raised).pod.spec.terminationGracePeriodSeconds, 900);
    const longer = { ...pod, metadata: { ...pod.metadata, annotations: { 'agent-commerce.dev/drain-seconds': '90' } } };
    assert.equal(injected(longer).pod.spec.terminationGracePeriodSeconds, 150);
  });

  it('takes a probe or a hook that changed after the first time for the original', () => {
    const { pod } = injected(podOf({ readinessProbe: { httpGet: { path: '/old', port: 8080 } } }));
    const [shop] = pod.spec.containers;
    const changed = {
      ...pod,
      spec: {
        ...pod.spec,
        containers: [
          {
            ...SHOP,
            ...shop,
            readinessProbe: { httpGet: { path: '/new', port: 8080 } },
            lifecycle: { preStop: { exec: {} } },
          },
        ],
      },
    };
    const again = injected(changed);
    assert.equal(environmentOf(again.pod)['GATEWAY_APP_PROBE_READINESS'], 'http://127.0.0.1:8080/new');
    assert.deepEqual(again.pod.spec.containers[0]?.lifecycle, { preStop: { exec: {} } });
  });

  it('asks no other host in the place of the kubelet, whatever a pod says it asked before', () => {
    const { pod } = injected(podOf({ readinessProbe: { httpGet: { port: 8080 } } }));
    for (const url of ['http://10.0.0.9/', 'file:///etc/passwd', 'http://127.0.0.1:8080@registry.example/', ''])
      assert.deepEqual(
        injectPod(
          withGateway(pod, (gateway) => ({
            ...gateway,
            env: (gateway.env ?? []).map((entry) =>
              entry.name === 'GATEWAY_APP_PROBE_READINESS' ? { ...entry, value: url } : entry,
            ),
          })),
          USUAL_OPTIONS,
        ),
        {
          kind: 'refused',
          message:
            "the readinessProbe of container shop already asks the gateway, and what it asked before is lost; write the merchant's own",
        },
      );
  });

  it('keeps names that kustomize generated of its own, and no others', () => {
    const { pod } = injected(podOf());
    const named = (configMap: string): Pod => ({
      ...pod,
      spec: {
        ...pod.spec,
        volumes: (pod.spec.volumes ?? []).map((volume) =>
          volume.configMap === undefined ? volume : { ...volume, configMap: { ...volume.configMap, name: configMap } },
        ),
      },
    });
    const generated = named('agent-commerce-gateway-config-7h2k45gbfd');
    assert.deepEqual(injected(generated).pod, generated);
    assert.deepEqual(injected(named('prices')).pod, pod);
    assert.deepEqual(injected(named('agent-commerce-gateway-config-mine')).pod, pod);
  });

  it("keeps the default container of kubectl where the pod names another one for the merchant's", () => {
    const pod = podOf(
      {},
      {},
      {
        'agent-commerce.dev/upstream-container': 'shop',
        'kubectl.kubernetes.io/default-container': 'logs',
      },
    );
    assert.equal(injected(pod).pod.metadata?.annotations?.['kubectl.kubernetes.io/default-container'], 'logs');
  });

  it('adds the management port to what a mesh leaves alone already, once', () => {
    const key = 'traffic.sidecar.istio.io/excludeInboundPorts';
    for (const [before, after] of [
      ['', '8403'],
      ['9090, 9091', '9090, 9091,8403'],
      ['9090, 8403', '9090, 8403'],
      ['18403', '18403,8403'],
    ] as const)
      assert.equal(injected(podOf({}, {}, { [key]: before })).pod.metadata?.annotations?.[key], after);
  });

  it('tells a mesh to leave the management port of the options alone', () => {
    const pod = podOf({}, {}, { 'config.linkerd.io/skip-inbound-ports': '25,84030' });
    const options = { ...USUAL_OPTIONS, ports: { agents: 9402, management: 9403 } };
    const injection = injectPod(pod, options);
    assert.ok(injection.kind === 'injected');
    assert.equal(injection.pod.metadata?.annotations?.['config.linkerd.io/skip-inbound-ports'], '25,84030,9403');
    assert.equal(injection.pod.metadata?.annotations?.['traffic.sidecar.istio.io/excludeInboundPorts'], '9403');
    assert.deepEqual(injectPod(injection.pod, options), { ...injection, patch: [], warnings: [] });
  });

  it('writes one key into the environment and both hooks, and keeps it when it injects again', () => {
    const keysOf = ({ spec }: Pod) => {
      const gateway = spec.initContainers?.find(({ name }) => name === 'agent-commerce-gateway');
      const sent = [gateway, spec.containers[0]].map(
        (container) => container?.lifecycle?.preStop?.httpGet?.httpHeaders?.[0]?.value,
      );
      return [gateway?.env?.find(({ name }) => name === 'GATEWAY_HOOK_KEY')?.value, ...sent];
    };
    const keyed = injectPod(podOf(), USUAL_OPTIONS, 'first-key');
    assert.ok(keyed.kind === 'injected');
    assert.deepEqual(keysOf(keyed.pod), ['first-key', 'first-key', 'first-key']);
    for (const key of [undefined, 'second-key'])
      assert.deepEqual(injectPod(keyed.pod, USUAL_OPTIONS, key), { ...keyed, patch: [], warnings: [] });
    const plain = injected(podOf()).pod;
    assert.deepEqual(keysOf(plain), [undefined, '1', '1']);
    const later = injectPod(plain, USUAL_OPTIONS, 'second-key');
    assert.ok(later.kind === 'injected');
    assert.deepEqual(keysOf(later.pod), ['second-key', 'second-key', 'second-key']);
  });

  const malformed: readonly { readonly pod: unknown; readonly message: string }[] = [
    { pod: null, message: 'pod must be a mapping' },
    { pod: {}, message: 'pod.spec is missing' },
    { pod: { spec: {} }, message: 'pod.spec.containers is missing' },
    { pod: { spec: { containers: [] } }, message: 'the pod has no containers; the gateway needs one to sell for' },
    { pod: { spec: { containers: {} } }, message: 'pod.spec.containers must be a list' },
    { pod: { spec: { containers: [null] } }, message: 'pod.spec.containers[0] must be a mapping' },
    { pod: { spec: { containers: [{}] } }, message: 'pod.spec.containers[0].name is missing' },
    {
      pod: { metadata: { annotations: null }, spec: { containers: [SHOP] } },
      message: 'pod.metadata.annotations must be a mapping',
    },
    {
      pod: { metadata: { labels: { app: 1 } }, spec: { containers: [SHOP] } },
      message: 'pod.metadata.labels[app] must be a text',
    },
    {
      pod: { spec: { containers: [{ ...SHOP, ports: [{ containerPort: '8080' }] }] } },
      message: 'pod.spec.containers[0].ports[0].containerPort must be a whole number',
    },
    {
      pod: { spec: { containers: [{ ...SHOP, livenessProbe: { httpGet: { path: '/' } } }] } },
      message: 'pod.spec.containers[0].livenessProbe.httpGet.port is missing',
    },
    {
      pod: { spec: { containers: [SHOP], hostNetwork: 'yes' } },
      message: 'pod.spec.hostNetwork must be true or false',
    },
  ];
  for (const { pod, message } of malformed)
    it(`refuses what is no pod: ${message}`, () => {
      assert.deepEqual(injectPod(pod as Pod, USUAL_OPTIONS), { kind: 'refused', message });
    });

  it('refuses a pod that runs already with a container for debugging', () => {
    const injection = injectPod(podOf({}, { ephemeralContainers: [{ name: 'debugger' }] }), USUAL_OPTIONS);
    assert.match(injection.kind === 'refused' ? injection.message : '', /ephemeral containers: it runs already/);
  });
});

function withGateway(pod: Pod, change: (gateway: Container) => Container): Pod {
  const initContainers = (pod.spec.initContainers ?? []).map((each) =>
    each.name === 'agent-commerce-gateway' ? change(each) : each,
  );
  return { ...pod, spec: { ...pod.spec, initContainers } };
}

describe('the fixtures of injection', () => {
  for (const { name, pod, refused, said } of POD_FIXTURES)
    it(`${name} is ${refused ? 'refused' : 'injected'} in its words`, () => {
      const injection = injectPod(pod, USUAL_OPTIONS);
      assert.equal(injection.kind, refused ? 'refused' : 'injected');
      assert.deepEqual(injection.kind === 'refused' ? [injection.message] : injection.warnings, said);
    });

  it('are all there', () => assert.ok(POD_FIXTURES.length >= 40));
});
