import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import jsonPatch from 'fast-json-patch';
import { processSettings } from '../../../src/cli/checked-start.ts';
import { ProblemList } from '../../../src/problems/problem.ts';
import { type AppProbeSettings, readAppProbes } from '../../../src/sidecar/app-probe-settings.ts';
import { injectPod } from '../../../src/sidecar/injection/inject-pod.ts';
import { GATEWAY_CONTAINER } from '../../../src/sidecar/injection/names.ts';
import { USUAL_OPTIONS } from '../../../src/sidecar/injection/options.ts';
import type { Container, HttpGet, Pod } from '../../../src/sidecar/injection/pod.ts';
import { POD_FIXTURES } from './fixtures.ts';

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
interface Meddling {
  readonly container: boolean;
  readonly initContainer: boolean;
  readonly variable: boolean;
  readonly mount: boolean;
  readonly limit: boolean;
  readonly volume: boolean;
  readonly annotation: boolean;
  readonly grace: boolean;
}

const ARBITRARY_MEDDLING: fc.Arbitrary<Meddling> = fc.record({
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
function meddled(pod: Pod, how: Meddling): Pod {
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

const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;

const SEED = randomInt(2 ** 31);

/** Made once for all laws: making a pod takes longer than injecting it. */
const GENERATED = fc
  .sample(fc.tuple(ARBITRARY_POD, ARBITRARY_MEDDLING), { numRuns: 5_000, seed: SEED })
  .map(([made, meddling]) => {
    const [pod, before] = [copy(made), copy(made)];
    return { pod, before, meddling, injection: injectPod(frozen(pod), USUAL_OPTIONS) };
  });

const INJECTED = GENERATED.flatMap(({ before, meddling, injection }) =>
  injection.kind === 'injected' ? [{ before, meddling, after: injection.pod, patch: injection.patch }] : [],
);

/** Checks the law for each pod that took the gateway; a failure tells the pod. */
function holds(law: (injected: (typeof INJECTED)[number]) => void): void {
  for (const injected of INJECTED)
    try {
      law(injected);
    } catch (cause) {
      throw new Error(`seed ${SEED}: ${JSON.stringify(injected.before)}`, { cause });
    }
}

function injectedAgain(pod: Pod): Pod {
  const injection = injectPod(pod, USUAL_OPTIONS);
  assert.equal(injection.kind, 'injected', injection.kind === 'refused' ? injection.message : '');
  return injection.kind === 'injected' ? injection.pod : pod;
}

/** As it comes over the wire. */
function copy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value));
}

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) frozen(member);
  return value;
}

function gatewayOf(pod: Pod): Container | undefined {
  return pod.spec.initContainers?.find(({ name }) => name === GATEWAY_CONTAINER);
}

describe('injection of any pod', () => {
  it('takes and refuses pods', () => {
    assert.ok(INJECTED.length >= 2_000, `${INJECTED.length} took the gateway, seed ${SEED}`);
    assert.ok(INJECTED.length < GENERATED.length);
  });

  it('changes nothing the second time', () => {
    holds(({ after }) => {
      const again = injectPod(after, USUAL_OPTIONS);
      assert.deepEqual(again.kind === 'injected' ? [again.pod, again.patch] : again, [after, []]);
    });
  });

  it('changes nothing after others added to what it made', () => {
    holds(({ after, meddling }) => {
      const changed = meddled(after, meddling);
      assert.deepEqual(injectedAgain(changed), changed);
    });
  });

  it('is what its patch makes of the pod', () => {
    holds(({ before, after, patch }) => {
      assert.deepEqual(jsonPatch.applyPatch(copy(before), copy(patch), true).newDocument, copy(after));
    });
  });

  it('leaves the pod that it was given as it was', () => {
    for (const { pod, before } of GENERATED) assert.deepEqual(pod, before);
  });

  it('leaves room for the drain beside the grace period that the pod had', () => {
    holds(({ before, after }) => {
      const drain = Number(after.metadata?.annotations?.['agent-commerce.dev/drain-seconds']);
      assert.equal(after.spec.terminationGracePeriodSeconds, (before.spec.terminationGracePeriodSeconds ?? 30) + drain);
    });
  });

  it('touches no other container, and of the merchant only probes and preStop', () => {
    holds(({ before, after }) => {
      const changed = after.spec.containers.filter(
        (container, index) => !isDeepStrictEqual(container, before.spec.containers[index]),
      );
      assert.ok(changed.length <= 1);
      assert.deepEqual(
        after.spec.initContainers?.filter(({ name }) => name !== GATEWAY_CONTAINER),
        before.spec.initContainers ?? [],
      );
      assert.deepEqual(after.spec.containers.map(untouched), before.spec.containers.map(untouched));
    });
  });

  it('can be undone: probes, hook and grace come back, and are handed over again', () => {
    holds(({ before, after }) => {
      const { annotations = {} } = after.metadata ?? {};
      const kept = { ...annotations, 'agent-commerce.dev/rewrite-probes': 'false' };
      const restored = injectedAgain({ ...after, metadata: { ...after.metadata, annotations: kept } });
      const grace = gatewayOf(restored)?.env?.find(({ name }) => name === 'GATEWAY_MERCHANT_GRACE_SECONDS')?.value;
      assert.equal(grace, String(before.spec.terminationGracePeriodSeconds ?? 30));
      for (const [index, container] of restored.spec.containers.entries())
        for (const member of PROBES) {
          const [now, then] = [container[member], before.spec.containers[index]?.[member]];
          assert.deepEqual(request(now?.httpGet, container), request(then?.httpGet, container));
        }
      assert.deepEqual(injectedAgain({ ...restored, metadata: { ...restored.metadata, annotations } }), after);
    });
  });

  it('says only what Kubernetes shows', () => {
    for (const { injection } of GENERATED) {
      const said = injection.kind === 'injected' ? injection.warnings : [injection.message];
      for (const sentence of said) assert.ok(sentence.length > 0 && sentence.length <= 256, sentence);
    }
  });
});

/** What injection never changes of a container. */
function untouched(container: Container): object {
  const { lifecycle, ...others } = container;
  const { preStop, ...hooks } = lifecycle ?? {};
  const probes = PROBES.map((member) => {
    const { httpGet, ...kept } = container[member] ?? {};
    return { kept, asks: httpGet !== undefined };
  });
  return { ...others, ...Object.fromEntries(PROBES.map((member) => [member, undefined])), hooks, probes };
}

/** The request that the kubelet makes. */
function request(httpGet: HttpGet | undefined, { ports = [] }: Container): readonly unknown[] {
  if (httpGet === undefined) return [];
  const { path = '', port, scheme = 'HTTP', host = '', httpHeaders = [] } = httpGet;
  const number = ports.find(({ name }) => name === port)?.containerPort ?? port;
  const there = ['', 'localhost', '127.0.0.1'].includes(host) ? 'the merchant' : host;
  return [scheme, there, number, path.startsWith('/') ? path : `/${path}`, httpHeaders];
}

/** The environment of the gateway, expanded as the kubelet does; undefined: the pod was refused. */
function environmentOf(pod: Pod): Readonly<Record<string, string>> | undefined {
  const injection = injectPod(pod, USUAL_OPTIONS);
  if (injection.kind === 'refused') return undefined;
  const gateway = injection.pod.spec.initContainers?.find(({ name }) => name === GATEWAY_CONTAINER);
  return Object.fromEntries((gateway?.env ?? []).map(({ name, value = '' }) => [name, expanded(value)]));
}

/** References to variables and doubled signs, from left to right; no variable here has a value. */
function expanded(value: string): string {
  return value.replace(/\$\$|\$\(([^)]*)\)/g, (found, name) => (found === '$$' ? '$' : `the value of ${name}`));
}

function probesOf(environment: Readonly<Record<string, string>>): AppProbeSettings {
  const problems = new ProblemList();
  const probes = readAppProbes(environment, problems);
  problems.throwIfAny();
  return probes;
}

describe('what injection writes into the environment of the gateway', () => {
  it('is what the gateway starts with, for every fixture', () => {
    for (const { name, pod, refused } of POD_FIXTURES) {
      const environment = environmentOf(pod);
      assert.equal(environment === undefined, refused, name);
      if (environment === undefined) continue;
      probesOf(environment);
      const settings = processSettings(environment);
      assert.equal(settings.drainSeconds, 5);
      assert.equal(
        settings.drainBudgetSeconds,
        Number(pod.metadata?.annotations?.['agent-commerce.dev/drain-seconds'] ?? 75),
      );
      assert.equal(settings.merchantGraceSeconds, pod.spec.terminationGracePeriodSeconds ?? 30);
    }
  });

  it('is what the gateway starts with, for any pod', () => {
    fc.assert(
      fc.property(ARBITRARY_POD, (pod) => {
        const environment = environmentOf(pod);
        fc.pre(environment !== undefined);
        probesOf(environment);
        processSettings(environment);
      }),
      { numRuns: 500 },
    );
  });

  it('makes the gateway send what the kubelet would have sent', () => {
    const { pod } = POD_FIXTURES.find(({ name }) => name === 'odd-text') ?? assert.fail();
    assert.deepEqual(probesOf(environmentOf(pod) ?? {}), {
      liveness: {
        scheme: 'http',
        port: 8080,
        target: '/live/$(NAME)/$$(NAME)/$$$x/"quoted"/it\'s/\\back',
        headers: [],
      },
      readiness: {
        scheme: 'http',
        port: 8080,
        target: '/bereit/gr%C3%B6%C3%9Fe?q=%E6%97%A5%E6%9C%AC%20%F0%9F%98%80&a=%2F',
        headers: [
          ['X-Text', Buffer.from('a: b "c" $(NAME) ü').toString('latin1')],
          ['X-Empty', ''],
        ],
      },
      startup: { scheme: 'http', port: 8080, target: '/@registry.example/', headers: [] },
    });
  });
});
