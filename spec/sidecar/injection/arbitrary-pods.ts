/** Pods as people write them, and what other controllers add to an injected one. */

import fc from 'fast-check';
import { GATEWAY_CONTAINER } from '../../../src/sidecar/injection/names.ts';
import type { Container, Pod } from '../../../src/sidecar/injection/pod.ts';

type Members = Readonly<Record<string, unknown>>;

/** Of the optional members some are there. */
function some(members: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<Members> {
  return fc.record(members, { requiredKeys: [], noNullPrototype: true });
}

/** The second seldom: most pods should take the gateway. */
function often<T, U>(usual: fc.Arbitrary<T>, seldom: fc.Arbitrary<U>): fc.Arbitrary<T | U> {
  return fc.oneof({ weight: 8, arbitrary: usual }, { weight: 1, arbitrary: seldom });
}

const ODD_TEXT = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 24 }),
  fc.string({
    unit: fc.constantFrom('$', '(', ')', '"', "'", '\\', '/', '@', ':', ' ', 'a', '{', '}', '#'),
    maxLength: 16,
  }),
);
const PATH = fc.oneof(fc.constantFrom('/', '/healthz', '/ready?deep=1'), ODD_TEXT);
const HEADER_VALUE = ODD_TEXT.filter((value) => !/[\r\n]/.test(value));
const PORT_NAMES = ['http', 'web', 'metrics'];
const PORT = often(fc.constantFrom(80, 3000, 8080, 9090), fc.constantFrom(...PORT_NAMES));

const HTTP_GET = fc
  .tuple(
    PORT,
    some({
      path: PATH,
      scheme: fc.constantFrom('HTTP', 'HTTPS'),
      host: fc.constantFrom('', 'localhost', '127.0.0.1', '10.0.0.9', 'status.example'),
      httpHeaders: fc.array(
        fc.record({ name: fc.constantFrom('Host', 'X-Probe', 'Authorization'), value: HEADER_VALUE }),
        {
          maxLength: 2,
        },
      ),
    }),
  )
  .map(([port, members]) => ({ ...members, port }));

const TIMINGS = some({
  initialDelaySeconds: fc.integer({ min: 1, max: 60 }),
  periodSeconds: fc.integer({ min: 1, max: 30 }),
  timeoutSeconds: fc.integer({ min: 1, max: 10 }),
  successThreshold: fc.integer({ min: 1, max: 3 }),
  failureThreshold: fc.integer({ min: 1, max: 60 }),
  terminationGracePeriodSeconds: fc.integer({ min: 1, max: 60 }),
});
const COMMAND = { command: ['/bin/check'] };
const PROBE = fc
  .tuple(
    fc.oneof(
      { weight: 4, arbitrary: HTTP_GET.map((httpGet) => ({ httpGet })) },
      { weight: 1, arbitrary: fc.constant({ exec: COMMAND }) },
      { weight: 1, arbitrary: fc.constant({ tcpSocket: { port: 8080 } }) },
      { weight: 1, arbitrary: fc.constant({ grpc: { port: 9000 } }) },
    ),
    TIMINGS,
  )
  .map(([handler, timings]) => ({ ...handler, ...timings }));

const HOOK = fc.oneof(
  HTTP_GET.map((httpGet) => ({ httpGet })),
  fc.integer({ min: 0, max: 40 }).map((seconds) => ({ sleep: { seconds } })),
  fc.constant({ exec: COMMAND }),
);
const LIFECYCLE = some({ preStop: HOOK, postStart: fc.constant({ exec: COMMAND }), stopSignal: fc.constant('SIGINT') });

const PORTS = fc
  .tuple(
    fc.uniqueArray(fc.constantFrom(80, 3000, 8080, 9090), { maxLength: 3 }),
    fc.shuffledSubarray(PORT_NAMES),
    fc.boolean(),
  )
  .map(([numbers, named, host]) =>
    numbers.map((containerPort, index) => ({
      ...(named[index] === undefined ? {} : { name: named[index] }),
      containerPort,
      ...(host && index === 1 ? { hostPort: containerPort, protocol: 'TCP' } : {}),
    })),
  );

function container(name: string): fc.Arbitrary<Container> {
  return some({
    ports: PORTS,
    livenessProbe: PROBE,
    readinessProbe: PROBE,
    startupProbe: PROBE,
    lifecycle: LIFECYCLE,
    env: fc.constant([
      { name: 'NODE_ENV', value: 'production' },
      { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    ]),
    resources: fc.constant({ requests: { cpu: '20m' } }),
    securityContext: fc.constant({ runAsUser: 1000 }),
    volumeMounts: fc.constant([{ name: 'data', mountPath: '/data' }]),
    terminationMessagePath: fc.constant('/dev/termination-log'),
    stdin: fc.constant(true),
  }).map((members) => ({ name, image: `registry.example/${name}:1`, ...members }) as Container);
}

const CONTAINERS = fc
  .shuffledSubarray(['logs', 'shop', 'cache'])
  .chain((names) => fc.tuple(...(names.includes('shop') ? names : [...names, 'shop']).map(container)));
const INIT_CONTAINERS = fc
  .shuffledSubarray(['migrate', 'mesh'])
  .chain((names) => fc.tuple(...names.map(container)))
  .map((list) => list.map((each) => (each.name === 'mesh' ? { ...each, restartPolicy: 'Always' } : each)));

const ANNOTATIONS = some({
  'agent-commerce.dev/upstream-container': often(fc.constant('shop'), fc.constant('logs')),
  'agent-commerce.dev/upstream-port': often(fc.constantFrom('3000', '80'), fc.constantFrom('web', 'http', '99999')),
  'agent-commerce.dev/drain-seconds': often(fc.constantFrom('1', '75', '300'), fc.constantFrom('0', 'long')),
  'agent-commerce.dev/rewrite-probes': fc.constantFrom('true', 'false'),
  'agent-commerce.dev/upstream-prot': fc.constant('3000'),
  'kubectl.kubernetes.io/default-container': often(fc.constant('shop'), fc.constant('cache')),
  'traffic.sidecar.istio.io/excludeInboundPorts': fc.constantFrom('', '9090', '9090, 8403', '18403'),
  'config.linkerd.io/skip-inbound-ports': fc.constantFrom('25,587', '8403'),
  'example.com/a~b': ODD_TEXT,
});

const SPEC = some({
  initContainers: INIT_CONTAINERS,
  volumes: fc.constantFrom([], [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]),
  terminationGracePeriodSeconds: fc.constantFrom(0, 5, 30, 90, 3600),
  restartPolicy: fc.constantFrom('Always', 'OnFailure', 'Never'),
  shareProcessNamespace: fc.boolean(),
  hostNetwork: often(fc.constant(false), fc.constant(true)),
  nodeSelector: fc.constant({ zone: 'a' }),
  serviceAccountName: fc.constant('shop'),
});

const METADATA = some({
  name: fc.constant('shop'),
  generateName: fc.constant('shop-'),
  namespace: fc.constant('shop'),
  labels: fc.constantFrom({}, { app: 'shop', 'agent-commerce.dev/inject': 'enabled' }),
  annotations: ANNOTATIONS,
});

/** Most take the gateway; some are refused. */
export const ARBITRARY_POD: fc.Arbitrary<Pod> = fc.tuple(CONTAINERS, SPEC, fc.option(METADATA, { nil: undefined })).map(
  ([containers, spec, metadata]) =>
    ({
      apiVersion: 'v1',
      kind: 'Pod',
      ...(metadata === undefined ? {} : { metadata }),
      spec: { ...spec, containers },
    }) as Pod,
);

/** Changes that the API server and other webhooks make between two passes of injection. */
export interface Meddling {
  readonly container: boolean;
  readonly initContainer: boolean;
  readonly variable: boolean;
  readonly mount: boolean;
  readonly limit: boolean;
  readonly volume: boolean;
  readonly annotation: boolean;
  readonly grace: boolean;
}

export const ARBITRARY_MEDDLING: fc.Arbitrary<Meddling> = fc.record({
  container: fc.boolean(),
  initContainer: fc.boolean(),
  variable: fc.boolean(),
  mount: fc.boolean(),
  limit: fc.boolean(),
  volume: fc.boolean(),
  annotation: fc.boolean(),
  grace: fc.boolean(),
});

/** An injected pod after others added to it; none of that is for injection to change. */
export function meddled(pod: Pod, how: Meddling): Pod {
  const { spec, metadata } = pod;
  const proxy = { name: 'proxy', image: 'registry.example/proxy:1', ports: [{ containerPort: 15_001 }] };
  const gateway = (each: Container): Container => ({
    ...each,
    ...(how.variable ? { env: [...(each.env ?? []), { name: 'TZ', value: '$(NOT)$$' }] } : {}),
    ...(how.mount ? { volumeMounts: [...(each.volumeMounts ?? []), { name: 'ca', mountPath: '/etc/ssl/extra' }] } : {}),
    ...(how.limit
      ? {
          resources: { ...each.resources, limits: { ...each.resources?.limits, cpu: '2' } },
          resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }],
        }
      : {}),
  });
  const init = (spec.initContainers ?? []).map((each) => (each.name === GATEWAY_CONTAINER ? gateway(each) : each));
  return {
    ...pod,
    metadata: {
      ...metadata,
      annotations: { ...metadata?.annotations, ...(how.annotation ? { 'prometheus.io/scrape': 'true' } : {}) },
    },
    spec: {
      ...spec,
      initContainers: how.initContainer ? [{ ...proxy, name: 'mesh-init' }, ...init, { ...proxy, name: 'late' }] : init,
      containers: how.container ? [proxy, ...spec.containers] : spec.containers,
      ...(how.volume ? { volumes: [{ name: 'token' }, ...(spec.volumes ?? [])] } : {}),
      ...(how.grace ? { terminationGracePeriodSeconds: (spec.terminationGracePeriodSeconds ?? 0) + 60 } : {}),
    },
  };
}
