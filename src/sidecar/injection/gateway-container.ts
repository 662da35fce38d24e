/** The gateway's container and volumes in an injected pod, with every default spelled out. */

import * as names from './names.ts';
import { ENV_HEADERS, ENV_PRESTOP, ENV_PRESTOP_SECONDS, PROBES, RELEASE_PATH } from './names.ts';
import type { InjectionOptions } from './options.ts';
import {
  type Container,
  type EnvVar,
  type Hook,
  type HttpGet,
  namedPort,
  type Probe,
  quoted,
  Refusal,
  type Volume,
  type VolumeMount,
} from './pod.ts';

/** The decisions of a pod about its gateway. */
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

/** Keeps variables, mounts, resources, resizePolicy and `Always` of others from `existing`. */
export function gatewayContainer(
  options: InjectionOptions,
  placement: Placement,
  existing: Container | undefined,
): Container {
  const { image, imagePullPolicy, ports, resources } = options;
  const on = (path: string): HttpGet => ({ path, port: ports.management, scheme: 'HTTP' });
  const { hookKey } = placement;
  const kept = foreignVariables(existing?.env ?? [], options);
  // A key that is there stays in its place, as every variable that others added.
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

/** The text that kustomize appends to the name of a generated ConfigMap or Secret. */
const HASH = /^-[2456789bcdfghkmt]{10}$/;

/**
 * The volumes of the gateway container. Names in `existing` stay if kustomize generated them of the
 * usual ones: a pod that a component of kustomize injected needs no change.
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

const OWN_DIRECTORIES = [names.CONFIG_DIRECTORY, names.SECRET_DIRECTORY, names.TOKEN_DIRECTORY];

/**
 * Variables that Node, its OpenSSL and the loader of libraries read before the gateway's code runs,
 * and those that name a proxy to ask in place of the configured address.
 */
const STEERING = /^(?:NODE_|LD_|SSL_|OPENSSL_)|^PATH$|_(?:PROXY|proxy)$/;

/** Leaves out variables whose names belong to injection, even if it does not write them now. */
function foreignVariables(env: readonly EnvVar[], { secretKeys }: InjectionOptions): readonly EnvVar[] {
  const requests = [...names.PROBES.map(({ env: name }) => name), names.ENV_PRESTOP];
  const own = new Set([
    'AGENT_COMMERCE_CONFIG',
    ...secretKeys.map((key) => `${key}_FILE`),
    names.ENV_MERCHANT,
    names.ENV_DRAIN_SECONDS,
    names.ENV_DRAIN_BUDGET,
    names.ENV_MERCHANT_GRACE,
    names.ENV_PRESTOP_SECONDS,
    ...requests.flatMap((name) => [name, `${name}${names.ENV_HEADERS}`]),
  ]);
  return env.filter(({ name }) => !own.has(name));
}

/** Leaves out mounts that injection replaces. */
function foreignMounts(mounts: readonly VolumeMount[]): readonly VolumeMount[] {
  return mounts.filter(({ mountPath }) => !OWN_DIRECTORIES.includes(mountPath));
}

/** Why the additions of others cannot stay; undefined when they can. */
export function additionFault(
  { env = [], volumeMounts = [] }: Container,
  options: InjectionOptions,
): string | undefined {
  const variable = foreignVariables(env, options).find(({ name }) => STEERING.test(name));
  if (variable !== undefined)
    return `container ${names.GATEWAY_CONTAINER} has variable ${variable.name}, which could change what its image runs or whom it asks; remove it`;
  const mount = foreignMounts(volumeMounts).find(({ mountPath }) => isOverGateway(mountPath));
  if (mount !== undefined)
    return `container ${names.GATEWAY_CONTAINER} has a mount at ${mount.mountPath}, over files of the gateway or with .. in it; use another path`;
  return undefined;
}

/** Whether the path equals, lies under or lies above one that the gateway needs, or has `..`. */
function isOverGateway(mountPath: string): boolean {
  // A relative path counts from the root. The target of `..` depends on links of the image.
  const steps = mountPath.split('/').filter((step) => step !== '' && step !== '.');
  const path = `/${steps.map((step) => `${step}/`).join('')}`;
  return (
    steps.includes('..') ||
    names.GUARDED_PATHS.some((guarded) => path.startsWith(`${guarded}/`) || `${guarded}/`.startsWith(path))
  );
}

/** Addresses that mean the merchant; the kubelet would take them for the node's own. */
const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['', 'localhost', '127.0.0.1']);
const WRITTEN_URL = /^(https?):\/\/127\.0\.0\.1:([1-9]\d{0,4})(\/.*)$/s;

/** A request that the gateway makes to the merchant in the kubelet's place. */
interface LoopbackRequest {
  readonly url: string;
  /** Lines `Name: value`; undefined when there are none. */
  readonly headers: string | undefined;
}

type ProbeMember = (typeof PROBES)[number]['member'];

/** The merchant's own preStop: the gateway runs it, or the container keeps it (`kept`). */
type OwnPreStop =
  | { readonly kind: 'none' }
  | { readonly kind: 'request'; readonly request: LoopbackRequest }
  | { readonly kind: 'sleep'; readonly seconds: number }
  /** Stays as it is: an `exec`, or a request to somewhere else. */
  | { readonly kind: 'kept'; readonly hook: Hook };

export interface Originals {
  readonly probes: ReadonlyMap<ProbeMember, LoopbackRequest>;
  readonly preStop: OwnPreStop;
}

/** @throws Refusal */
export function readOriginals(container: Container, earlier: readonly EnvVar[], management: number): Originals {
  const probes = new Map<ProbeMember, LoopbackRequest>();
  for (const { member, path, env } of PROBES) {
    const httpGet = container[member]?.httpGet;
    if (httpGet === undefined) continue;
    const asked = `the ${member} of container ${container.name}`;
    if (isOwn(httpGet, path, management)) probes.set(member, remembered(earlier, env, asked));
    else if (isLoopback(httpGet)) probes.set(member, loopbackRequest(httpGet, container, asked));
  }
  return { probes, preStop: readPreStop(container, earlier, management) };
}

function readPreStop(container: Container, earlier: readonly EnvVar[], management: number): OwnPreStop {
  const hook = container.lifecycle?.preStop;
  if (hook?.exec !== undefined) return { kind: 'kept', hook };
  if (hook?.sleep !== undefined) return { kind: 'sleep', seconds: hook.sleep.seconds ?? 0 };
  const asked = `the preStop of container ${container.name}`;
  if (hook?.httpGet === undefined) return { kind: 'none' };
  if (isOwn(hook.httpGet, RELEASE_PATH, management)) return rememberedPreStop(earlier, asked);
  if (!isLoopback(hook.httpGet)) return { kind: 'kept', hook };
  return { kind: 'request', request: loopbackRequest(hook.httpGet, container, asked) };
}

function rememberedPreStop(earlier: readonly EnvVar[], asked: string): OwnPreStop {
  const seconds = variableText(earlier, ENV_PRESTOP_SECONDS);
  if (seconds !== undefined && /^\d{1,9}$/.test(seconds)) return { kind: 'sleep', seconds: Number(seconds) };
  if (variableText(earlier, ENV_PRESTOP) === undefined) return { kind: 'none' };
  return { kind: 'request', request: remembered(earlier, ENV_PRESTOP, asked) };
}

/** Whether the handler already asks the gateway. */
function isOwn({ port, path }: HttpGet, ownPath: string, management: number): boolean {
  return port === management && path === ownPath;
}

function isLoopback({ host = '' }: HttpGet): boolean {
  return LOOPBACK_HOSTS.has(host);
}

function remembered(earlier: readonly EnvVar[], name: string, asked: string): LoopbackRequest {
  const url = variableText(earlier, name);
  if (url === undefined || !WRITTEN_URL.test(url))
    throw new Refusal(`${asked} already asks the gateway, and what it asked before is lost; write the merchant's own`);
  return { url, headers: variableText(earlier, `${name}${ENV_HEADERS}`) };
}

/** The request as the kubelet would send it, but to the merchant's loopback address. */
function loopbackRequest(httpGet: HttpGet, container: Container, asked: string): LoopbackRequest {
  const { port, path = '', scheme = 'HTTP', httpHeaders = [] } = httpGet;
  const number = typeof port === 'number' ? port : namedPort(container, port, asked);
  const broken = httpHeaders.find(({ name, value = '' }) => /[\r\n]/.test(name + value));
  if (broken !== undefined)
    throw new Refusal(`${asked} sends header ${quoted(broken.name)} with a line break; a header is one line`);
  return {
    // The slash keeps a path such as `@elsewhere` from becoming part of the address.
    url: `${scheme.toLowerCase()}://127.0.0.1:${number}${path.startsWith('/') ? '' : '/'}${path}`,
    headers:
      httpHeaders.length === 0 ? undefined : httpHeaders.map(({ name, value = '' }) => `${name}: ${value}`).join('\n'),
  };
}

/** The handler that a request of an earlier injection stands for. */
export function handlerOf({ url, headers }: LoopbackRequest): HttpGet {
  const [, scheme = 'http', port, path = '/'] = WRITTEN_URL.exec(url) ?? [];
  return {
    path,
    port: Number(port),
    scheme: scheme.toUpperCase(),
    ...(headers === undefined ? {} : { httpHeaders: headers.split('\n').map(headerOf) }),
  };
}

function headerOf(line: string): { readonly name: string; readonly value: string } {
  const at = line.indexOf(': ');
  return { name: line.slice(0, at), value: line.slice(at + 2) };
}
