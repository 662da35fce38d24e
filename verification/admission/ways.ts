/** The ways of injection beside the policies: the command, and the component that it writes. */

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { kustomize } from '../../spec/deploy/kubectl.ts';
import { temporaryDirectory } from '../../spec/support/temporary-directory.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import type { Outcome } from './outcome.ts';

const PROJECT = join(import.meta.dirname, '../..');
const TIMEOUT_MS = 60_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** A pod of a run, by name. */
export interface NamedPod {
  readonly name: string;
  readonly pod: Pod;
}

/** What `acg inject` prints for all pods that it takes, and its words for each that it refuses. */
export function commanded(
  pods: readonly NamedPod[],
  refused: readonly NamedPod[],
  options: string,
): ReadonlyMap<string, Outcome> {
  const outcomes = new Map<string, Outcome>();
  const taken = inject(pods, options);
  if (taken.status !== 0) throw new Error(`acg inject: ${taken.stderr.trim()}`);
  const printed = parseAllDocuments(taken.stdout).map((document) => document.toJS() as Pod);
  for (const [place, { name }] of pods.entries()) {
    const pod = printed[place];
    outcomes.set(name, pod === undefined ? { kind: 'refused', words: 'nothing printed' } : { kind: 'stored', pod });
  }
  for (const { name, pod } of refused) {
    const { status, stdout, stderr } = inject([{ name, pod }], options);
    const clean = status === 1 && stdout === '';
    outcomes.set(name, {
      kind: 'refused',
      words: clean ? stderr : `exit ${status} with ${stdout.length} characters printed`,
    });
  }
  return outcomes;
}

/** What kubectl renders with the component that `acg inject --component` writes for all these pods. */
export async function componentRendered(
  pods: readonly NamedPod[],
  options: string,
): Promise<ReadonlyMap<string, Outcome>> {
  await using ends = new AsyncDisposableStack();
  const directory = await temporaryDirectory(ends, 'component-');
  const written = inject(pods, options, '--component', join(directory, 'component'));
  if (written.status !== 0) throw new Error(`acg inject --component: ${written.stderr.trim()}`);
  writeFileSync(join(directory, 'pods.yaml'), documentsOf(pods));
  writeFileSync(
    join(directory, 'kustomization.yaml'),
    JSON.stringify({ resources: ['pods.yaml'], components: ['component'] }),
  );
  const printed = parseAllDocuments(kustomize(directory)).map((document) => document.toJS() as Pod);
  const byName = new Map(printed.map((pod) => [pod.metadata?.name, pod]));
  return new Map(
    pods.map(({ name, pod }) => {
      const rendered = byName.get(pod.metadata?.name);
      return [
        name,
        rendered === undefined ? { kind: 'refused', words: 'not rendered' } : { kind: 'stored', pod: rendered },
      ];
    }),
  );
}

function inject(pods: readonly NamedPod[], options: string, ...more: readonly string[]) {
  const words = ['inject', '--options', options, '-f', '-', ...more];
  return spawnSync(process.execPath, [join(PROJECT, 'src/main.ts'), ...words], {
    input: documentsOf(pods),
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
    maxBuffer: MAX_BYTES,
  });
}

function documentsOf(pods: readonly NamedPod[]): string {
  return pods.map(({ pod }) => JSON.stringify({ apiVersion: 'v1', kind: 'Pod', ...pod })).join('\n---\n');
}
