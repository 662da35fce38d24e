/** What deploy/admission applies to a cluster, as kubectl renders it. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { kustomize } from '../../spec/deploy/kubectl.ts';
import type { InjectionOptions } from '../../src/sidecar/injection/options.ts';
import { optionsSource } from '../../src/sidecar/injector/options-source.ts';

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
export function namespace(name: string, labels: Readonly<Record<string, string>> = {}): ClusterObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } } as ClusterObject;
}

/** YAML documents (JSON is YAML) of the objects. */
export function documents(objects: readonly ClusterObject[]): string {
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
