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

/** Injects into every pod of the object that opted in; other objects stay as they are. */
export function injectObject(object: unknown, options: InjectionOptions): Injected {
  if (!isMembers(object)) return { object, workloads: [], doubts: [] };
  if (Array.isArray(object['items']) && String(object['kind']).endsWith('List')) {
    const items = object['items'].map((item: unknown) => injectObject(item, options));
    return {
      object: { ...object, items: items.map((item) => item.object) },
      workloads: items.flatMap(({ workloads }) => workloads),
      doubts: items.flatMap(({ doubts }) => doubts),
    };
  }
  const workload = workloadOf(object);
  if (workload === undefined) return { object, workloads: [], doubts: [] };
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

function workloadOf(object: Manifest): Workload | undefined {
  const { apiVersion, kind, metadata } = object;
  const [group] = String(apiVersion).split('/');
  const template = TEMPLATES[`${group} ${kind}`];
  if (template === undefined) return undefined;
  const { name, generateName, namespace } = isMembers(metadata) ? metadata : {};
  const pod = template.reduce<unknown>((inner, member) => (isMembers(inner) ? inner[member] : undefined), object);
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
