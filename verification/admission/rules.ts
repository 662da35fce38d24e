/** What webhook and policy let pass and refuse beside the fixtures: ways past the gateway. */

import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import { GATEWAY_CONTAINER, GUARDED_PATHS, INJECTED_LABEL, OPT_IN_LABEL } from '../../src/sidecar/injection/names.ts';
import type { InjectionOptions } from '../../src/sidecar/injection/options.ts';
import type { Container, Pod } from '../../src/sidecar/injection/pod.ts';
import { ENFORCED, FREE } from './clusters.ts';
import type { Review } from './judge.ts';
import { type Ask, faultsOf, type Outcome, type Outcomes, outcomeOf, type Report, withDefaults } from './outcome.ts';

/** A request, and what must come of it: this pod with its defaults, or a refusal in these words. */
interface Rule {
  readonly review: Review;
  readonly expected: { readonly pod: Pod } | { readonly words: string };
}

const LABELLED = { [OPT_IN_LABEL]: 'enabled' };
const SHOP: Container = {
  name: 'shop',
  image: 'registry.example/shop:3.1.0',
  ports: [{ name: 'http', containerPort: 8080 }],
};

function podWith(labels: Readonly<Record<string, string>>, spec: Partial<Pod['spec']> = {}): Pod {
  return { metadata: { name: 'shop', labels }, spec: { containers: [SHOP], ...spec } };
}

/** Every rule, for the options of the cluster. */
function rules(options: InjectionOptions): readonly Rule[] {
  const made = (pod: Pod): Pod => {
    const injection = injectPod(pod, options);
    if (injection.kind === 'refused') throw new Error(injection.message);
    return injection.pod;
  };
  const asked = podWith(LABELLED);
  const injected = made(asked);
  const bare = podWith({});
  const withGateway = (change: (gateway: Container) => Container, pod: Pod = injected): Pod => ({
    ...pod,
    spec: {
      ...pod.spec,
      initContainers: (pod.spec.initContainers ?? []).map((each) =>
        each.name === GATEWAY_CONTAINER ? change(each) : each,
      ),
    },
  });
  const foreign = withGateway((gateway) => ({ ...gateway, image: 'registry.example/free:1', args: ['--free'] }));
  const commanded = withGateway((gateway) => ({ ...gateway, command: ['/x/e'] }));
  const healthcheck = withGateway((gateway) => ({ ...gateway, args: ['healthcheck'] }));
  const sourced = withGateway((gateway) => ({ ...gateway, envFrom: [{ configMapRef: { name: 'x' } }] }));
  const portless = withGateway((gateway) => ({ ...gateway, ports: [{ name: 'agent-http', containerPort: 8402 }] }));
  const renumbered = withGateway((gateway) => ({
    ...gateway,
    ports: (gateway.ports ?? []).map((port) => ({ ...port, containerPort: port.containerPort + 1_000 })),
  }));
  const steered = withGateway((gateway) => ({
    ...gateway,
    env: [...(gateway.env ?? []), { name: 'NODE_OPTIONS', value: '--import=/x/e.mjs' }],
  }));
  const hidden = withGateway((gateway) => ({
    ...gateway,
    volumeMounts: [...(gateway.volumeMounts ?? []), { name: 'x', mountPath: '/etc/agent-commerce/' }],
  }));
  const named = podWith({ ...LABELLED, 'app.kubernetes.io/name': 'agent-commerce-injector' });
  const unnamed: Pod = {
    ...podWith(LABELLED, { containers: [{ ...SHOP, ports: [{ containerPort: 8080 }] }] }),
    metadata: { name: 'shop', labels: LABELLED, annotations: { 'agent-commerce.dev/upstream-port': '' } },
  };
  const pulled = withGateway((gateway) => ({ ...gateway, imagePullPolicy: 'Always' }));
  const added = withGateway((gateway) => ({
    ...gateway,
    imagePullPolicy: 'Always',
    env: [
      { name: 'AGENT_COMMERCE_CONFIG', value: '/x/other.yaml' },
      { name: 'ADMIN_TOKEN_FILE', value: '/x/token' },
      { name: 'TZ', value: 'UTC' },
      { name: 'MY_NODE_NAME', value: 'a' },
    ],
    volumeMounts: ['/etc/agent-commerce', '/var/run/secrets/istio', '/vault/secrets', '/application'].map(
      (mountPath) => ({
        name: 'x',
        mountPath,
      }),
    ),
  }));
  const doubled = withGateway((gateway) => ({
    ...gateway,
    env: [
      ...(gateway.env ?? []),
      { name: 'GATEWAY_MERCHANT_GRACE_SECONDS', value: '1' },
      { name: 'TZ' },
      { name: 'TZ' },
    ],
  }));
  const ordinary = withGateway(({ restartPolicy, ...gateway }) => gateway);
  const relabelled = (labels: Readonly<Record<string, string>>): Pod => ({
    ...injected,
    metadata: { ...injected.metadata, labels },
  });
  const earlier = withGateway((gateway) => ({ ...gateway, image: 'registry.example/gateway:0.9' }));
  const debugged: Pod = {
    ...injected,
    spec: { ...injected.spec, ephemeralContainers: [{ name: 'debugger', image: 'sh:1' }] },
  };
  const created = (
    name: string,
    cluster: string,
    namespace: string,
    object: Pod,
    expected: Rule['expected'],
  ): Rule => ({
    review: { name, cluster, namespace, operation: 'CREATE', object },
    expected,
  });
  const updated = (
    name: string,
    namespace: string,
    [before, object]: readonly [Pod, Pod],
    expected: Rule['expected'],
  ): Rule => ({
    review: { name, cluster: 'guard', namespace, operation: 'UPDATE', object, oldObject: before },
    expected,
  });
  const dry = created('a dry run gives the same', 'webhook', FREE, asked, { pod: injected });
  return [
    created('a pod that does not ask stays as it is', 'webhook', FREE, bare, { pod: bare }),
    created('a pod that asks gets the gateway', 'webhook', ENFORCED, asked, { pod: injected }),
    { ...dry, review: { ...dry.review, dryRun: true } },
    created('a pod of the system stays as it is', 'webhook', 'kube-system', asked, { pod: asked }),
    created('another image under the name is replaced', 'webhook', FREE, foreign, { pod: injected }),
    created('a pod that calls itself the injector gets the gateway', 'webhook', FREE, named, {
      pod: made(named),
    }),
    created('another command under the name is replaced', 'webhook', FREE, commanded, { pod: injected }),
    created('envFrom under the name is replaced', 'webhook', FREE, sourced, { pod: injected }),
    created('pulling that was made Always stays so', 'webhook', FREE, pulled, { pod: pulled }),
    created('what meshes and secret stores add stays, its own is replaced', 'webhook', FREE, added, {
      pod: made(added),
    }),
    created('a variable that steers Node', 'webhook', FREE, steered, {
      words: 'has variable NODE_OPTIONS',
    }),
    created('a mount over the configuration', 'webhook', FREE, hidden, {
      words: 'has a mount at /etc/agent-commerce/',
    }),
    created('an empty name for an unnamed port', 'webhook', FREE, unnamed, {
      words: 'upstream-port names port ""',
    }),
    created('without the label, where it is demanded', 'webhook', ENFORCED, bare, {
      words: 'does not carry label',
    }),
    created('a pod that does not ask, while the webhook is away', 'webhook away', FREE, bare, { pod: bare }),
    created('a pod that asks, while the webhook is away', 'webhook away', FREE, asked, {
      words: 'failed calling webhook',
    }),
    created('an API server with its certificate', 'its own certificate', FREE, asked, { pod: injected }),
    created('an API server without a certificate', 'no certificate', FREE, asked, {
      words: 'failed to call webhook: A client certificate is required, and none was shown.',
    }),
    created('an API server with a foreign certificate', 'a foreign certificate', FREE, asked, {
      words: 'failed to call webhook: The client certificate is not trusted here: ',
    }),
    created('another path', 'webhook at another path', FREE, asked, {
      words: 'failed to call webhook: Reviews are answered at /mutate only.',
    }),
    created('another authority for the injector', 'webhook of another authority', FREE, asked, {
      words: 'certificate signed by unknown authority',
    }),
    created('opting out, where the label is demanded', 'webhook', ENFORCED, podWith({ [OPT_IN_LABEL]: 'disabled' }), {
      words: `label ${OPT_IN_LABEL} is "disabled"`,
    }),
    created('a pod made by acg inject is as injected', 'webhook', ENFORCED, injected, { pod: injected }),
    created('a container under the name that is no sidecar is replaced', 'webhook', FREE, ordinary, { pod: injected }),
    created('a pod that asks, without any injection', 'guard', FREE, asked, { words: 'was not injected' }),
    created('a gateway that has variables twice', 'webhook', FREE, doubled, { pod: made(doubled) }),
    created('a pod made by acg inject, without any injection', 'guard', ENFORCED, injected, { pod: injected }),
    created('another image under the name, without any injection', 'guard', FREE, foreign, {
      words: 'runs image registry.example/free:1',
    }),
    created('another command under the name, without any injection', 'guard', FREE, commanded, {
      words: 'runs another command',
    }),
    created('other args under the name, without any injection', 'guard', FREE, healthcheck, {
      words: 'runs another command',
    }),
    created('envFrom under the name, without any injection', 'guard', FREE, sourced, { words: 'remove envFrom' }),
    created('a port is missing under the name, without any injection', 'guard', FREE, portless, {
      words: 'agent-http 8402 and agent-admin 8403',
    }),
    created('other ports under the name, without any injection', 'guard', FREE, renumbered, {
      words: 'agent-http 8402 and agent-admin 8403',
    }),
    created('a variable that steers Node, without any injection', 'guard', FREE, steered, {
      words: 'has variable NODE_OPTIONS',
    }),
    created('a mount over the configuration, without any injection', 'guard', FREE, hidden, {
      words: 'has a mount at /etc/agent-commerce/',
    }),
    created('no sidecar under the name, without any injection', 'guard', FREE, ordinary, {
      words: 'is no native sidecar',
    }),
    created('without its parameters', 'no parameters', FREE, asked, { words: 'no params found' }),
    created('with incomplete parameters', 'incomplete parameters', FREE, asked, {
      words: 'lacks image, managementPort, or has no number there',
    }),
    created('a pod on the network of its node', 'guard', FREE, podWith(LABELLED, { hostNetwork: true }), {
      words: "its ports would be the node's; remove hostNetwork",
    }),
    updated(
      'a running pod is labelled anew',
      FREE,
      [injected, relabelled({ ...injected.metadata?.labels, tier: 'a' })],
      {
        pod: relabelled({ ...injected.metadata?.labels, tier: 'a' }),
      },
    ),
    updated('a running pod loses the label of its NetworkPolicy', FREE, [injected, relabelled(LABELLED)], {
      words: `${INJECTED_LABEL} of a running pod stay as they are`,
    }),
    updated('a running pod stops asking', FREE, [injected, relabelled({ [INJECTED_LABEL]: 'true' })], {
      words: 'of a running pod stay as they are',
    }),
    updated('a running gateway gets another image', FREE, [injected, foreign], { words: 'takes no other image than' }),
    updated('a running gateway gets the image of the cluster', FREE, [earlier, injected], { pod: injected }),
    updated(
      'an earlier gateway keeps running',
      ENFORCED,
      [earlier, { ...earlier, metadata: { ...earlier.metadata, annotations: { a: 'b' } } }],
      {
        pod: { ...earlier, metadata: { ...earlier.metadata, annotations: { a: 'b' } } },
      },
    ),
    updated('a pod from before the label was demanded keeps running', ENFORCED, [bare, podWith({ tier: 'a' })], {
      pod: podWith({ tier: 'a' }),
    }),
    debugging('a debug container, where the gateway is demanded', ENFORCED, injected, debugged, {
      words: 'a debug container would reach the merchant past it',
    }),
    debugging('a debug container elsewhere', FREE, injected, debugged, { pod: debugged }),
    ...additionRules(injected, options),
  ];
}

function debugging(name: string, namespace: string, oldObject: Pod, object: Pod, expected: Rule['expected']): Rule {
  return {
    review: {
      name,
      cluster: 'guard',
      namespace,
      operation: 'UPDATE',
      subresource: 'ephemeralcontainers',
      object,
      oldObject,
    },
    expected,
  };
}

const PATHS = [
  ...GUARDED_PATHS.flatMap((path) => [path, `${path}/`, `${path}/below`, `${path}-beside`, path.slice(1)]),
  ...['/', '.', '..', '//', '/etc', '/run', '/var', '/var/run/secrets', '/x/../app', '/./app', '/x/..data', '/tmp'],
];
const VARIABLES = [
  ...['NODE_OPTIONS', 'MY_NODE_NAME', 'NODE', 'LD_PRELOAD', 'OLD_', 'SSL_CERT_FILE', 'OPENSSL_CONF', 'PATH', 'PATHS'],
  ...['HTTPS_PROXY', 'https_proxy', 'PROXY', '_PROXY', 'Https_Proxy', 'A_PROXY_B', 'REDIS_URL_FILE', 'TLS_FILE'],
];

/** One rule for each addition to an injected pod. */
function additionRules(injected: Pod, options: InjectionOptions): readonly Rule[] {
  const added = (change: (gateway: Container) => Partial<Container>): Pod => ({
    ...injected,
    spec: {
      ...injected.spec,
      initContainers: (injected.spec.initContainers ?? []).map((each) =>
        each.name === GATEWAY_CONTAINER ? { ...each, ...change(each) } : each,
      ),
    },
  });
  const pods: readonly (readonly [string, Pod])[] = [
    ...PATHS.map((mountPath): readonly [string, Pod] => [
      `a mount at ${mountPath}`,
      added(({ volumeMounts = [] }) => ({ volumeMounts: [...volumeMounts, { name: 'x', mountPath }] })),
    ]),
    ...VARIABLES.map((name): readonly [string, Pod] => [
      `variable ${name}`,
      added(({ env = [] }) => ({ env: [...env, { name, value: 'x' }] })),
    ]),
  ];
  return pods.map(([name, object]): Rule => {
    const injection = injectPod(object, options);
    return {
      review: { name, cluster: 'guard', namespace: FREE, operation: 'CREATE', object },
      expected: injection.kind === 'refused' ? { words: injection.message } : { pod: object },
    };
  });
}

/** Walks the rules. */
export async function ruleList(ask: Ask, options: InjectionOptions): Promise<Report> {
  const wanted = rules(options);
  const right = await rightOf(ask, wanted);
  const lines = ['rules'];
  const faults: string[] = [];
  for (const [name, wrong] of await walked(ask, wanted, right)) {
    faults.push(...wrong.map((fault) => `${name}: ${fault}`));
    const word = right.get(name)?.kind === 'refused' ? 'refused' : 'passes ';
    lines.push(`  ${wrong.length > 0 ? 'BROKEN ' : word} ${name}`);
  }
  return { lines, faults };
}

async function walked(
  ask: Ask,
  wanted: readonly Rule[],
  right: Outcomes,
): Promise<readonly (readonly [string, readonly string[]])[]> {
  const reviews = wanted.map(({ review }) => review);
  const verdicts = await ask(reviews);
  return reviews.map(({ name }, place) => {
    const verdict = verdicts[place];
    return [name, faultsOf(right.get(name), verdict === undefined ? undefined : outcomeOf(verdict))];
  });
}

/** What must come of each rule, with the defaults of the API server. */
function rightOf(ask: Ask, wanted: readonly Rule[]): Promise<Outcomes> {
  const outcomes = wanted.map(({ review: { name }, expected }): readonly [string, Outcome] => [
    name,
    'pod' in expected ? { kind: 'stored', pod: expected.pod } : { kind: 'refused', words: expected.words },
  ]);
  return withDefaults(ask, new Map(outcomes));
}
