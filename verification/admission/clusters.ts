/** The clusters of a run: what is applied to each, and the namespaces that all have. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { kustomize } from '../../spec/deploy/kubectl.ts';
import type { InjectionOptions } from '../../src/sidecar/injection/options.ts';
import { optionsSource } from '../../src/sidecar/injector/open-injector.ts';
import type { Cluster } from './judge.ts';

/** A namespace in which a pod may do without the gateway. */
export const FREE = 'shop';
/** One in which no pod may. */
export const ENFORCED = 'enforced-shop';

const NAMESPACES = [
  namespace(FREE),
  namespace(ENFORCED, { 'agent-commerce.dev/enforce': 'true' }),
  namespace('kube-system'),
];

/** A cluster to which these objects are applied. */
export function clusterOf(objects: readonly ClusterObject[], parts: Omit<Cluster, 'manifests'> = {}): Cluster {
  return { ...parts, manifests: documents([...NAMESPACES, ...objects]) };
}

/** The clusters that need nothing running. */
export function clustersOfPolicies(): Readonly<Record<string, Cluster>> {
  const policy = rendered('validating');
  return {
    // Only the defaults of the API server.
    plain: clusterOf([]),
    // The validating policy without the webhook.
    guard: clusterOf(policy),
    'no parameters': clusterOf(policy.filter(({ kind }) => kind !== 'ConfigMap')),
    'incomplete parameters': clusterOf(policy.map(incomplete)),
  };
}

function incomplete(object: ClusterObject): ClusterObject {
  if (object.kind !== 'ConfigMap') return object;
  const { image, ...data } = object['data'] as Readonly<Record<string, string>>;
  return { ...object, data: { ...data, managementPort: 'none' } };
}

const ADMISSION = fileURLToPath(new URL('../../deploy/admission', import.meta.url));
/** Kinds that the admission code of an API server reads. */
const READ = new Set([
  'Namespace',
  'ConfigMap',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'MutatingWebhookConfiguration',
]);

/** An object of a manifest. */
export interface ClusterObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly [member: string]: unknown;
}

/** The objects of a folder of deploy/admission that admission reads. */
export function rendered(folder: 'validating' | 'webhook'): readonly ClusterObject[] {
  return parseAllDocuments(kustomize(`${ADMISSION}/${folder}`))
    .map((document) => document.toJS() as ClusterObject)
    .filter(({ kind }) => READ.has(kind));
}

/** A namespace of merchants. */
function namespace(name: string, labels: Readonly<Record<string, string>> = {}): ClusterObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } } as ClusterObject;
}

/** YAML documents (JSON is YAML) of the objects. */
function documents(objects: readonly ClusterObject[]): string {
  return objects.map((object) => JSON.stringify(object)).join('\n---\n');
}

/**
 * The parameters of the policy in a directory, as a ConfigMap is mounted.
 */
export function mountParameters(directory: string): void {
  const parameters = rendered('validating').find(({ kind }) => kind === 'ConfigMap');
  if (parameters === undefined) throw new Error('deploy/admission/validating renders no parameters');
  for (const [key, value] of Object.entries(parameters['data'] as Readonly<Record<string, string>>))
    writeFileSync(join(directory, key), value);
}

/** The options that a mounted ConfigMap, or a file, says. */
export function optionsAt(path: string): InjectionOptions {
  const { files, read } = optionsSource(path);
  return read(files.map((file) => readFileSync(file, 'utf8')));
}
