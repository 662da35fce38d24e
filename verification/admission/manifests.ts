/** What deploy/admission applies to a cluster, as kubectl renders it. */

import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { kustomize } from '../../spec/deploy/kubectl.ts';
import type { InjectionOptions } from '../../src/sidecar/injection/options.ts';

const ADMISSION = fileURLToPath(new URL('../../deploy/admission', import.meta.url));
/** Kinds that the admission code of an API server reads. */
const READ = new Set([
  'Namespace',
  'ConfigMap',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
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
export function rendered(folder: 'policy' | 'validating' | 'webhook'): readonly ClusterObject[] {
  return parseAllDocuments(kustomize(`${ADMISSION}/${folder}`))
    .map((document) => document.toJS() as ClusterObject)
    .filter(({ kind }) => READ.has(kind));
}

/** A namespace of merchants. */
export function namespace(name: string, labels: Readonly<Record<string, string>> = {}): ClusterObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } } as ClusterObject;
}

/** YAML documents (JSON is YAML) of the objects. */
export function documents(objects: readonly ClusterObject[]): string {
  return objects.map((object) => JSON.stringify(object)).join('\n---\n');
}

/** The options of injectPod that the parameters of the policies say. */
export function optionsOf({ data }: { readonly data: Readonly<Record<string, string>> }): InjectionOptions {
  const value = (key: string): string => {
    const found = data[key];
    if (found === undefined) throw new Error(`the parameters lack ${key}`);
    return found;
  };
  return {
    image: value('image'),
    imagePullPolicy: value('imagePullPolicy'),
    configMap: value('configMap'),
    secret: value('secret'),
    secretKeys: value('secretKeys').split(','),
    ports: { agents: Number(value('agentsPort')), management: Number(value('managementPort')) },
    drainSeconds: Number(value('drainSeconds')),
    resources: {
      requests: { cpu: value('cpuRequest'), memory: value('memoryRequest') },
      limits: { memory: value('memoryLimit') },
    },
  };
}
