/** The gateway's container and volumes in an injected pod, with every default spelled out. */

import { foreignMounts, foreignVariables } from './additions.ts';
import * as names from './names.ts';
import type { InjectionOptions } from './options.ts';
import type { Originals } from './originals.ts';
import type { Container, EnvVar, HttpGet, Probe, Volume } from './pod.ts';

/** What the pod decides about its gateway. */
export interface Placement {
  readonly merchantPort: number | undefined;
  readonly originals: Originals;
  readonly rewriteProbes: boolean;
  readonly drainSeconds: number;
  /** The grace period that the pod had without the gateway, seconds. */
  readonly ownGrace: number;
  /** The value of the header of the hooks; undefined: the usual one. */
  readonly hookKey: string | undefined;
}

/** `existing` keeps the variables, mounts, resources and the pulling that others added to it. */
export function gatewayContainer(
  options: InjectionOptions,
  placement: Placement,
  existing: Container | undefined,
): Container {
  const { image, imagePullPolicy, ports, resources } = options;
  const on = (path: string): HttpGet => ({ path, port: ports.management, scheme: 'HTTP' });
  const { hookKey } = placement;
  const kept = foreignVariables(existing?.env ?? [], options);
  // A key that is there stays where it is, as every variable of others.
  const isKept = hookKey === undefined || kept.some(({ name }) => name === names.ENV_HOOK_KEY);
  const others = isKept ? kept : [variable(names.ENV_HOOK_KEY, hookKey), ...kept];
  const hook = { ...on(names.DRAIN_PATH), httpHeaders: [names.hookHeader(hookKey)] };
  return {
    name: names.GATEWAY_CONTAINER,
    image,
    // AlwaysPullImages sets Always and refuses any other value: a second injection keeps it.
    imagePullPolicy: existing?.imagePullPolicy === 'Always' ? 'Always' : imagePullPolicy,
    // In initContainers this makes a native sidecar: it starts before the merchant and outlives it.
    restartPolicy: 'Always',
    args: ['serve'],
    env: [...environment(options, placement), ...others],
    ports: [
      { name: names.AGENTS_PORT, containerPort: ports.agents, protocol: 'TCP' },
      { name: names.MANAGEMENT_PORT, containerPort: ports.management, protocol: 'TCP' },
    ],
    startupProbe: probe(on('/health'), { periodSeconds: 1, timeoutSeconds: 1, failureThreshold: 60 }),
    livenessProbe: probe(on('/health'), { periodSeconds: 10, timeoutSeconds: 2, failureThreshold: 3 }),
    readinessProbe: probe(on('/routing'), { periodSeconds: 2, timeoutSeconds: 2, failureThreshold: 2 }),
    lifecycle: { preStop: { httpGet: hook } },
    // A default limit of the namespace stays: a second pass without it would be refused.
    resources: {
      requests: { ...existing?.resources?.requests, ...resources.requests },
      limits: { ...existing?.resources?.limits, ...resources.limits },
    },
    ...(existing?.resizePolicy === undefined ? {} : { resizePolicy: existing.resizePolicy }),
    securityContext: RESTRICTED,
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [...MOUNTS, ...foreignMounts(existing?.volumeMounts ?? [])],
  };
}

const RESTRICTED = {
  runAsNonRoot: true,
  runAsUser: 65532,
  runAsGroup: 65532,
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};

const MOUNTS = [
  { name: names.CONFIG_VOLUME, mountPath: names.CONFIG_DIRECTORY, readOnly: true },
  { name: names.SECRET_VOLUME, mountPath: names.SECRET_DIRECTORY, readOnly: true },
  // Hides the service-account token from the container that faces the internet.
  { name: names.NO_TOKEN_VOLUME, mountPath: names.TOKEN_DIRECTORY, readOnly: true },
];

function probe(httpGet: HttpGet, timings: Probe): Probe {
  return { httpGet, successThreshold: 1, ...timings };
}

function environment(options: InjectionOptions, placement: Placement): readonly EnvVar[] {
  const { merchantPort, originals, rewriteProbes, drainSeconds, ownGrace } = placement;
  return [
    variable('AGENT_COMMERCE_CONFIG', `${names.CONFIG_DIRECTORY}/${names.CONFIG_KEY}`),
    ...options.secretKeys.map((key) => variable(`${key}_FILE`, `${names.SECRET_DIRECTORY}/${key}`)),
    ...(merchantPort === undefined ? [] : [variable(names.ENV_MERCHANT, `http://127.0.0.1:${merchantPort}`)]),
    variable(names.ENV_DRAIN_SECONDS, String(names.PROPAGATION_SECONDS)),
    variable(names.ENV_DRAIN_BUDGET, String(drainSeconds)),
    variable(names.ENV_MERCHANT_GRACE, String(ownGrace)),
    ...(rewriteProbes
      ? names.PROBES.flatMap(({ member, env }) => requestVariables(env, originals.probes.get(member)))
      : []),
    ...(originals.preStop.kind === 'request' ? requestVariables(names.ENV_PRESTOP, originals.preStop.request) : []),
    ...(originals.preStop.kind === 'sleep'
      ? [variable(names.ENV_PRESTOP_SECONDS, String(originals.preStop.seconds))]
      : []),
  ];
}

function requestVariables(
  name: string,
  request: { readonly url: string; readonly headers: string | undefined } | undefined,
): readonly EnvVar[] {
  if (request === undefined) return [];
  const { url, headers } = request;
  return [variable(name, url), ...(headers === undefined ? [] : [variable(`${name}${names.ENV_HEADERS}`, headers)])];
}

/** What kustomize appends to the name of a generated ConfigMap or Secret. */
const HASH = /^-[2456789bcdfghkmt]{10}$/;

/**
 * The volumes of the gateway container. `existing` keeps the names that kustomize generated of the
 * usual ones: a pod that its component injected is as injected as any other.
 */
export function gatewayVolumes(options: InjectionOptions, existing: readonly Volume[]): readonly Volume[] {
  const named = (volume: string) => existing.find(({ name }) => name === volume);
  const configMap = generated(options.configMap, named(names.CONFIG_VOLUME)?.configMap?.name);
  const secret = generated(options.secret, named(names.SECRET_VOLUME)?.secret?.secretName);
  return [
    { name: names.CONFIG_VOLUME, configMap: { name: configMap, defaultMode: 0o644 } },
    // Files belong to root; 65532 reads them as "other". 0440 would need an fsGroup, which would
    // change the merchant's volumes too. Only this container mounts them.
    { name: names.SECRET_VOLUME, secret: { secretName: secret, defaultMode: 0o444 } },
    { name: names.NO_TOKEN_VOLUME, emptyDir: { sizeLimit: '1Mi' } },
  ];
}

function generated(usual: string, found: string | undefined): string {
  return found?.startsWith(usual) === true && HASH.test(found.slice(usual.length)) ? found : usual;
}

/** The kubelet replaces `$(NAME)` and makes one `$` of `$$`, so each `$` is written twice. */
function variable(name: string, text: string): EnvVar {
  return { name, value: text.replaceAll('$', '$$$$') };
}

/** The text of a variable that `variable` wrote. */
export function variableText(env: readonly EnvVar[], name: string): string | undefined {
  return env.find((entry) => entry.name === name)?.value?.replaceAll('$$', '$');
}
