/** The names that injection reads and writes in a pod; every way of injection uses the same. */

/** The name of the gateway's container, by which a second injection recognises it. */
export const GATEWAY_CONTAINER = 'agent-commerce-gateway';

export const AGENTS_PORT = 'agent-http';
export const MANAGEMENT_PORT = 'agent-admin';

const PREFIX = 'agent-commerce.dev/';
export const KEY_PREFIX = PREFIX;

/** The label, and its value, by which a pod asks for the gateway. */
export const OPT_IN_LABEL = `${PREFIX}inject`;
export const OPT_IN_VALUE = 'enabled';
/** The label that an injected pod carries, with the value `"true"`. */
export const INJECTED_LABEL = `${PREFIX}injected`;

/** Annotations of the pod that injection reads. */
export const UPSTREAM_CONTAINER = `${PREFIX}upstream-container`;
export const UPSTREAM_PORT = `${PREFIX}upstream-port`;
export const DRAIN_SECONDS = `${PREFIX}drain-seconds`;
export const REWRITE_PROBES = `${PREFIX}rewrite-probes`;
export const KNOWN_ANNOTATIONS: readonly string[] = [UPSTREAM_CONTAINER, UPSTREAM_PORT, DRAIN_SECONDS, REWRITE_PROBES];

/** Annotations of others that injection writes. */
export const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container';
/** Ports that a mesh must leave alone: the kubelet speaks plain HTTP to the management port. */
export const MESH_EXCLUSIONS = [
  'traffic.sidecar.istio.io/excludeInboundPorts',
  'config.linkerd.io/skip-inbound-ports',
] as const;

export const CONFIG_VOLUME = 'agent-commerce-config';
export const SECRET_VOLUME = 'agent-commerce-secret';
export const NO_TOKEN_VOLUME = 'agent-commerce-no-token';

export const CONFIG_DIRECTORY = '/etc/agent-commerce';
export const CONFIG_KEY = 'gateway.yaml';
export const SECRET_DIRECTORY = '/run/agent-commerce';
export const TOKEN_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';
/** Paths that no mount of others may hide; `/var/run` is a link to `/run` in most images. */
export const GUARDED_PATHS: readonly string[] = [
  '/app',
  '/nodejs',
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib64',
  '/etc/ld.so.cache',
  '/etc/ld.so.preload',
  CONFIG_DIRECTORY,
  SECRET_DIRECTORY,
  '/var/run/agent-commerce',
  TOKEN_DIRECTORY,
  '/run/secrets/kubernetes.io/serviceaccount',
];

/** Environment variables of the gateway container. */
export const ENV_MERCHANT = 'MERCHANT_BASE_URL';
export const ENV_DRAIN_SECONDS = 'GATEWAY_DRAIN_SECONDS';
export const ENV_DRAIN_BUDGET = 'GATEWAY_DRAIN_BUDGET_SECONDS';
export const ENV_MERCHANT_GRACE = 'GATEWAY_MERCHANT_GRACE_SECONDS';
export const ENV_PRESTOP = 'GATEWAY_APP_PRESTOP';
export const ENV_PRESTOP_SECONDS = 'GATEWAY_APP_PRESTOP_SECONDS';
/** The end of the names of variables that hold the headers of a probe or of the hook. */
export const ENV_HEADERS = '_HEADERS';

/** The kinds of probes: their member of a container, their path on the management port. */
export const PROBES = [
  { member: 'livenessProbe', path: '/app-probe/liveness', env: 'GATEWAY_APP_PROBE_LIVENESS' },
  { member: 'readinessProbe', path: '/app-probe/readiness', env: 'GATEWAY_APP_PROBE_READINESS' },
  { member: 'startupProbe', path: '/app-probe/startup', env: 'GATEWAY_APP_PROBE_STARTUP' },
] as const;

export const DRAIN_PATH = '/drain';
export const RELEASE_PATH = '/release';
/** Holds the value that the header of the two hooks must have; `1` where it is not set. */
export const ENV_HOOK_KEY = 'GATEWAY_HOOK_KEY';
/** The header of the two hooks, which no page in a browser can send unasked. */
export const hookHeader = (key = '1') => ({ name: 'Agent-Commerce-Hook', value: key });

/** How long new calls are still served after the drain began, seconds. */
export const PROPAGATION_SECONDS = 5;
/** The grace period that Kubernetes gives a pod that names none, seconds. */
export const USUAL_GRACE_SECONDS = 30;
