/** Finds the pods of Kubernetes objects: in the templates of workloads, in the items of lists. */

import { type Injection, injectPod } from './inject-pod.ts';
import { KEY_PREFIX, OPT_IN_LABEL, OPT_IN_VALUE } from './names.ts';
import type { InjectionOptions } from './options.ts';
import type { Pod } from './pod.ts';
import { quoted } from './refusal.ts';

/** Any object of Kubernetes. */
export type Manifest = Readonly<Record<string, unknown>>;

/** Where a kind keeps its pod: the members that lead to its metadata and spec. */
const TEMPLATES: Readonly<Record<string, readonly string[]>> = {
  'v1 Pod': [],
  'apps Deployment': ['spec', 'template'],
  'apps StatefulSet': ['spec', 'template'],
  'apps DaemonSet': ['spec', 'template'],
  'apps ReplicaSet': ['spec', 'template'],
  'batch Job': ['spec', 'template'],
  'batch CronJob': ['spec', 'jobTemplate', 'spec', 'template'],
};

/** Where kinds of others keep their pods, by kind. */
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

/** The object with what injection made of it, or as it was. */
export interface Injected {
  readonly object: unknown;
  readonly workloads: readonly (Workload & { readonly injection: Injection })[];
  /** What looks like a workload that wanted to opt in. */
  readonly doubts: readonly string[];
}

/** `Deployment/shop`, as kubectl writes it. */
export function titleOf({ kind, name }: { readonly kind: string; readonly name: string }): string {
  return `${kind}/${name}`;
}

/**
 * Injects into every pod of the object that opted in; other objects stay as they are. A pod that
 * opted in within a kind that is not known, by `podPaths` neither, is a doubt.
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

/** What a kind that is not known says of its pods, once: the first pod that asks, or seems to. */
function doubtOf(object: Manifest): readonly string[] {
  for (const workload of podsIn(object)) {
    const asked = optIn(workload);
    if (asked === 'no') continue;
    if (asked !== 'yes') return [asked];
    const { kind, template } = workload;
    // A pod in a list has no way of names alone.
    const path = template.some((name) => /^\d/.test(name)) ? '' : `write --pod-path ${kind}=${template.join('.')}, or `;
    const why = 'carries the label, and its kind is not one that this command changes';
    return [`${titleOf(workload)} ${why}: ${path}use the webhook`];
  }
  return [];
}

/** What has the shape of a pod within an object, wherever it is. */
function podsIn(object: Manifest, inner: object = object, path: readonly string[] = []): readonly Workload[] {
  const { spec }: { readonly spec?: unknown } = inner;
  if (isMembers(spec) && Array.isArray(spec['containers'])) return [workloadWith(object, path, inner)];
  return Object.entries(inner).flatMap(([name, member]: [string, unknown]) =>
    typeof member === 'object' && member !== null ? podsIn(object, member, [...path, name]) : [],
  );
}

/**
 * The label counts on the pod and on the workload itself. A sentence: one is there that may be
 * meant and does not count.
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
export function isMembers(value: unknown): value is Manifest {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
