/** The ways of injection that need no cluster: the command, and the component that it writes. */

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { kustomize } from '../../spec/deploy/kubectl.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import type { NamedPod, Outcome } from './outcome.ts';

const ACG = join(import.meta.dirname, '../../src/main.ts');
const TIMEOUT_MS = 60_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** What `acg inject` prints for the pods that it takes; nothing of a pod may change the next. */
export function commanded(pods: readonly NamedPod[], options: string): ReadonlyMap<string, Outcome> {
  const { status, stdout, stderr } = inject(pods, options);
  if (status !== 0) throw new Error(`acg inject: ${stderr.trim()}`);
  return byName(pods, stdout);
}

/** What kubectl renders with the component that `acg inject --component` writes for these pods. */
export async function rendered(pods: readonly NamedPod[], options: string): Promise<ReadonlyMap<string, Outcome>> {
  await using ends = new AsyncDisposableStack();
  const directory = await temporaryDirectory(ends, 'component-');
  const { status, stderr } = inject(pods, options, '--component', join(directory, 'component'));
  if (status !== 0) throw new Error(`acg inject --component: ${stderr.trim()}`);
  writeFileSync(join(directory, 'pods.yaml'), documentsOf(pods));
  const kustomization = { resources: ['pods.yaml'], components: ['component'] };
  writeFileSync(join(directory, 'kustomization.yaml'), JSON.stringify(kustomization));
  return byName(pods, kustomize(directory));
}

/** Its words for each pod that it refuses; `more` are further arguments. */
export function refusals(
  pods: readonly NamedPod[],
  options: string,
  ...more: readonly string[]
): ReadonlyMap<string, Outcome> {
  const { status, stdout, stderr } = inject(pods, options, ...more);
  if (status !== 1 || stdout !== '')
    throw new Error(`acg inject ended with ${status} where it refuses, and printed pods`);
  const lines = stderr.split('\n');
  return new Map(
    pods.map(({ name, pod }) => {
      const line = lines.find((each) => each.startsWith(`refused: Pod/${pod.metadata?.name}: `));
      return [name, { kind: 'refused', words: line ?? 'not refused' }];
    }),
  );
}

function byName(pods: readonly NamedPod[], text: string): ReadonlyMap<string, Outcome> {
  const printed = parseAllDocuments(text).map((document) => document.toJS() as Pod);
  return new Map(
    pods.map(({ name, pod: { metadata } }) => {
      const pod = printed.find((each) => each.metadata?.name === metadata?.name);
      return [name, pod === undefined ? { kind: 'refused', words: 'not printed' } : { kind: 'stored', pod }];
    }),
  );
}

function inject(pods: readonly NamedPod[], options: string, ...more: readonly string[]) {
  return spawnSync(process.execPath, [ACG, 'inject', '--options', options, '-f', '-', ...more], {
    input: documentsOf(pods),
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
    maxBuffer: MAX_BYTES,
  });
}

function documentsOf(pods: readonly NamedPod[]): string {
  return pods.map(({ pod }) => JSON.stringify({ apiVersion: 'v1', kind: 'Pod', ...pod })).join('\n---\n');
}
