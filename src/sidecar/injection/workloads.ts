/** Finds the pods of Kubernetes objects: in the templates of workloads, in the items of lists. */

import { parse } from 'yaml';
import { variableText } from './gateway-container.ts';
import { type Injection, injectPod } from './inject-pod.ts';
import {
  CONFIG_KEY,
  CONFIG_VOLUME,
  ENV_MERCHANT,
  GATEWAY_CONTAINER,
  KEY_PREFIX,
  OPT_IN_LABEL,
  OPT_IN_VALUE,
  SECRET_VOLUME,
  UPSTREAM_PORT,
} from './names.ts';
import type { InjectionOptions } from './options.ts';
import { findMerchant, type Pod, quoted, sentence } from './pod.ts';

/** Any object of Kubernetes. */
export type Manifest = Readonly<Record<string, unknown>>;

/** The members that lead from an object to its pod (metadata and spec), by group and kind. */
const TEMPLATES: Readonly<Record<string, readonly string[]>> = {
  'v1 Pod': [],
  'apps Deployment': ['spec', 'template'],
  'apps StatefulSet': ['spec', 'template'],
  'apps DaemonSet': ['spec', 'template'],
  'apps ReplicaSet': ['spec', 'template'],
  'batch Job': ['spec', 'template'],
  'batch CronJob': ['spec', 'jobTemplate', 'spec', 'template'],
};

/** The members that lead to the pods of further kinds, by kind. */
export type PodPaths = Readonly<Record<string, readonly string[]>>;

/** A workload that asks for the gateway, and its pod. */
export interface Workload {
  readonly object: Manifest;
  readonly kind: string;
  readonly name: string;
  readonly namespace: string | undefined;
  /** The members that lead to the pod template. */
  readonly template: readonly string[];
  readonly pod: Pod;
}

/** The object after injection, or as it was. */
export interface Injected {
  readonly object: unknown;
  readonly workloads: readonly (Workload & { readonly injection: Injection })[];
  /** Sentences about workloads that seem to ask for the gateway. */
  readonly doubts: readonly string[];
}

/** `Deployment/shop`, as kubectl writes it. */
export function titleOf({ kind, name }: { readonly kind: string; readonly name: string }): string {
  return `${kind}/${name}`;
}

/**
 * Injects into every pod of the object that opted in; other objects stay as they are. A pod that
 * opted in is a doubt if neither TEMPLATES nor `podPaths` has its kind.
 */
export function injectObject(object: unknown, options: InjectionOptions, podPaths: PodPaths = {}): Injected {
  if (!isMembers(object)) return { object, workloads: [], doubts: [] };
  if (Array.isArray(object['items']) && String(object['kind']).endsWith('List')) {
    const items = object['items'].map((item: unknown) => injectObject(item, options, podPaths));
    return {
      object: { ...object, items: items.map((item) => item.object) },
      workloads: items.flatMap(({ workloads }) => workloads),
      doubts: items.flatMap(({ doubts }) => doubts),
    };
  }
  const workload = workloadOf(object, podPaths);
  if (workload === undefined) return { object, workloads: [], doubts: doubtOf(object) };
  const asked = optIn(workload);
  if (asked !== 'yes') return { object, workloads: [], doubts: asked === 'no' ? [] : [asked] };
  const injection = injectPod(workload.pod, options);
  const injected = injection.kind === 'injected' ? withPod(object, workload.template, injection.pod) : object;
  return { object: injected, workloads: [{ ...workload, injection }], doubts: [] };
}

/** The objects of an object: itself, or the items of a list. */
export function objectsIn(object: unknown): readonly Manifest[] {
  if (!isMembers(object)) return [];
  return Array.isArray(object['items']) && String(object['kind']).endsWith('List')
    ? object['items'].flatMap(objectsIn)
    : [object];
}

function workloadOf(object: Manifest, podPaths: PodPaths): Workload | undefined {
  const { apiVersion, kind } = object;
  const [group] = String(apiVersion).split('/');
  const template = TEMPLATES[`${group} ${kind}`] ?? podPaths[String(kind)];
  if (template === undefined) return undefined;
  const pod = template.reduce<unknown>((inner, member) => (isMembers(inner) ? inner[member] : undefined), object);
  return workloadWith(object, template, pod);
}

function workloadWith(object: Manifest, template: readonly string[], pod: unknown): Workload {
  const { kind, metadata } = object;
  const { name, generateName, namespace } = isMembers(metadata) ? metadata : {};
  return {
    object,
    kind: String(kind),
    name: String(name ?? generateName ?? ''),
    namespace: typeof namespace === 'string' ? namespace : undefined,
    template,
    // Injection refuses whatever has not the shape of a pod.
    pod: pod as Pod,
  };
}

/** The doubt about an object of unknown kind: its first pod that asks, or seems to; at most one. */
function doubtOf(object: Manifest): readonly string[] {
  for (const workload of podsIn(object)) {
    const asked = optIn(workload);
    if (asked === 'no') continue;
    if (asked !== 'yes') return [asked];
    const { kind, template } = workload;
    // No path of names alone leads to a pod in a list.
    const path = template.some((name) => /^\d/.test(name)) ? '' : `write --pod-path ${kind}=${template.join('.')}, or `;
    const why = 'carries the label, and its kind is not one that this command changes';
    return [`${titleOf(workload)} ${why}: ${path}use the webhook`];
  }
  return [];
}

/** Parts of an object that have the shape of a pod, at any depth. */
function podsIn(object: Manifest, inner: object = object, path: readonly string[] = []): readonly Workload[] {
  const { spec }: { readonly spec?: unknown } = inner;
  if (isMembers(spec) && Array.isArray(spec['containers'])) return [workloadWith(object, path, inner)];
  return Object.entries(inner).flatMap(([name, member]: [string, unknown]) =>
    typeof member === 'object' && member !== null ? podsIn(object, member, [...path, name]) : [],
  );
}

/**
 * `yes` if the pod or the workload itself has the label, else `no`, or a sentence about a label
 * that may be meant and does not count.
 */
function optIn({ object, pod, kind, name }: Workload): string {
  const labels = [labelsOf(pod), labelsOf(object)];
  if (labels.some((each) => each[OPT_IN_LABEL] === OPT_IN_VALUE)) return 'yes';
  for (const each of labels)
    for (const [key, value] of Object.entries(each))
      if (key.startsWith(KEY_PREFIX) && !(key === OPT_IN_LABEL && OPTED_OUT.has(String(value))))
        return `${kind}/${name} has the label ${quoted(key)}: ${quoted(value)}; only ${OPT_IN_LABEL}: ${OPT_IN_VALUE} asks for the gateway`;
  return 'no';
}

/** Values that plainly ask for no gateway. */
const OPTED_OUT: ReadonlySet<string> = new Set(['disabled', 'false']);

function labelsOf(object: unknown): Manifest {
  const metadata = isMembers(object) ? object['metadata'] : undefined;
  const labels = isMembers(metadata) ? metadata['labels'] : undefined;
  return isMembers(labels) ? labels : {};
}

function withPod(object: Manifest, [member, ...rest]: readonly string[], pod: Pod): Manifest {
  if (member === undefined) return { ...object, ...pod };
  const inner = object[member];
  return { ...object, [member]: withPod(isMembers(inner) ? inner : {}, rest, pod) };
}

/** Whether the value is a mapping. */
function isMembers(value: unknown): value is Manifest {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Secrets, and makers of Secrets whose values stand elsewhere. */
const SECRET_KINDS: ReadonlySet<string> = new Set(['Secret', 'SealedSecret', 'ExternalSecret']);

/** `pod`: the injected one. Each warning has at most the 256 characters that Kubernetes shows. */
export function workloadWarnings(
  workload: Workload,
  pod: Pod,
  objects: readonly Manifest[],
  options: InjectionOptions,
): readonly string[] {
  const beside = objects.filter((object) => namespaceOf(object) === workload.namespace);
  const config = volumeSource(pod, CONFIG_VOLUME) ?? options.configMap;
  const secret = volumeSource(pod, SECRET_VOLUME) ?? options.secret;
  return [
    ...publishedPorts(pod, beside),
    ...absent('ConfigMap', config, [CONFIG_KEY], beside),
    ...absent('Secret', secret, options.secretKeys, beside),
    ...baseUrl(pod, config, beside),
    ...sharedFile(workload, config, beside),
  ].map(sentence);
}

function volumeSource(pod: Pod, volume: string): string | undefined {
  const found = pod.spec.volumes?.find(({ name }) => name === volume);
  return found?.configMap?.name ?? found?.secret?.secretName;
}

/** Services that lead past the gateway. */
function publishedPorts(pod: Pod, beside: readonly Manifest[]): readonly string[] {
  const { container, port } = findMerchant(pod);
  const own = new Set<unknown>([port, ...(container.ports ?? []).flatMap((each) => [each.containerPort, each.name])]);
  own.delete(undefined);
  return beside
    .filter(({ kind, spec }) => kind === 'Service' && isMembers(spec) && selects(spec['selector'], pod))
    .flatMap((service) => {
      const ports: unknown = member(service, 'spec', 'ports');
      const published = (Array.isArray(ports) ? ports : []).map((each) => each?.targetPort ?? each?.port);
      const past = published.find((each) => own.has(each));
      if (past === undefined) return [];
      return [
        `Service ${nameOf(service)} publishes port ${quoted(past)} of container ${container.name} past the gateway: its callers do not pay; write targetPort: agent-http`,
      ];
    });
}

function selects(selector: unknown, pod: Pod): boolean {
  if (!isMembers(selector) || Object.keys(selector).length === 0) return false;
  return Object.entries(selector).every(([key, value]) => pod.metadata?.labels?.[key] === value);
}

/** Gives no warning where the input holds no object of the kind: such objects are elsewhere. */
function absent(
  kind: 'ConfigMap' | 'Secret',
  name: string,
  keys: readonly string[],
  beside: readonly Manifest[],
): readonly string[] {
  const kinds = kind === 'Secret' ? SECRET_KINDS : new Set([kind]);
  const known = beside.filter((object) => kinds.has(String(object['kind'])));
  if (known.length === 0) return [];
  const found = known.find((object) => nameOf(object) === name);
  if (found === undefined) return [`${kind} ${name} is not in the input; the gateway does not start without it`];
  if (found['kind'] !== kind) return [];
  const has = { ...membersOf(found['data']), ...membersOf(found['stringData']), ...membersOf(found['binaryData']) };
  const missing = keys.filter((key) => has[key] === undefined);
  return missing.length === 0 ? [] : [`${kind} ${name} has no key ${missing.join(', ')}, which the gateway reads`];
}

/** The variable of the pod replaces the address of the configuration, with its path. */
function baseUrl(pod: Pod, config: string, beside: readonly Manifest[]): readonly string[] {
  const gateway = pod.spec.initContainers?.find(({ name }) => name === GATEWAY_CONTAINER);
  const value = variableText(gateway?.env ?? [], ENV_MERCHANT);
  const said = member(configuration(config, beside), 'backend', 'baseUrl');
  if (typeof said !== 'string' || value === undefined) return [];
  if ([`\${${ENV_MERCHANT}}`, value, `${value}/`].includes(said)) return [];
  return [
    `ConfigMap ${config} says backend.baseUrl ${quoted(said)}, and the pod sets ${ENV_MERCHANT}, which replaces all of it with ${value}; another port is for ${UPSTREAM_PORT}`,
  ];
}

/** A SQLite file belongs to one pod: another one does not see which proofs are spent. */
function sharedFile(workload: Workload, config: string, beside: readonly Manifest[]): readonly string[] {
  if (member(configuration(config, beside), 'storage', 'sqlite') === undefined) return [];
  const why = severalPods(workload, beside);
  return why === undefined
    ? []
    : [
        `${why}, and ConfigMap ${config} keeps payments in a SQLite file of each pod: a proof could be spent in each; use storage.redis`,
      ];
}

function severalPods({ kind, name, object }: Workload, beside: readonly Manifest[]): string | undefined {
  if (kind === 'DaemonSet') return `DaemonSet ${name} runs a pod on each node`;
  const job = kind === 'CronJob' ? member(object, 'spec', 'jobTemplate') : object;
  const replicas = member(object, 'spec', 'replicas') ?? member(job, 'spec', 'parallelism');
  if (Number(replicas) > 1) return `${kind} ${name} has ${replicas} replicas`;
  const scaler = beside.find(
    (other) =>
      other['kind'] === 'HorizontalPodAutoscaler' &&
      member(other, 'spec', 'scaleTargetRef', 'kind') === kind &&
      member(other, 'spec', 'scaleTargetRef', 'name') === name &&
      Number(member(other, 'spec', 'maxReplicas')) > 1,
  );
  return scaler === undefined ? undefined : `HorizontalPodAutoscaler ${nameOf(scaler)} may run several pods`;
}

/** Undefined: it is not in the input, or is no YAML. */
function configuration(config: string, beside: readonly Manifest[]): unknown {
  const found = beside.find((object) => object['kind'] === 'ConfigMap' && nameOf(object) === config);
  const text = member(found, 'data', CONFIG_KEY);
  if (typeof text !== 'string') return undefined;
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

function member(object: unknown, ...path: readonly string[]): unknown {
  return path.reduce((inner, name) => membersOf(inner)[name], object);
}

function membersOf(value: unknown): Manifest {
  return isMembers(value) ? value : {};
}

function nameOf(object: Manifest): string {
  return String(member(object, 'metadata', 'name') ?? '');
}

function namespaceOf(object: Manifest): string | undefined {
  const namespace = member(object, 'metadata', 'namespace');
  return typeof namespace === 'string' ? namespace : undefined;
}
