/** The table of fixtures: what each way of injection makes of each pod. */

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { kustomize } from '../../spec/deploy/kubectl.ts';
import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import type { InjectionOptions } from '../../src/sidecar/injection/options.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { temporaryDirectory } from '../../tools/local-world/temporary-directory.ts';
import type { Verdict } from './judge.ts';
import {
  type Ask,
  creations,
  expectedOf,
  faultsOf,
  type NamedPod,
  type Outcome,
  type Outcomes,
  outcomeOf,
  type Report,
  withDefaults,
} from './outcome.ts';

/**
 * Judges every way by what injectPod makes of the fixtures. `file`: the options, for the command.
 */
export async function fixtureTable(
  ask: Ask,
  fixtures: readonly NamedPod[],
  options: InjectionOptions,
  file: string,
): Promise<Report> {
  const expected = await expectedOf(ask, fixtures, options);
  const isRefused = ({ name }: NamedPod): boolean => expected.get(name)?.kind === 'refused';
  const taken = fixtures.filter((fixture) => !isRefused(fixture));
  const refused = fixtures.filter(isRefused);
  const asked = await ask(creations('webhook', fixtures));
  const ways: readonly (readonly [string, Outcomes])[] = [
    ['acg inject', new Map([...(await withDefaults(ask, commanded(taken, file))), ...refusals(refused, file)])],
    [
      'component',
      new Map([
        ...(await withDefaults(ask, await rendered(taken, file))),
        ...refusals(refused, file, '--component', `${file}.component`),
      ]),
    ],
    ['webhook', outcomesOf(asked)],
  ];
  const faults = await warningFaults(ask, taken, asked, options);
  const lines = [`| fixture | ${ways.map(([way]) => way).join(' | ')} |`, `|${' --- |'.repeat(1 + ways.length)}`];
  for (const { name } of fixtures) {
    const cells = ways.map(([way, outcomes]) => {
      const wrong = faultsOf(expected.get(name), outcomes.get(name));
      faults.push(...wrong.map((fault) => `${name} by ${way}: ${fault}`));
      return wrong.length > 0 ? 'DIFFERS' : wordFor(expected.get(name));
    });
    lines.push(`| ${[name, ...cells].join(' | ')} |`);
  }
  return { lines, faults };
}

function outcomesOf(verdicts: readonly Verdict[]): Outcomes {
  return new Map(verdicts.map((verdict) => [verdict.name, outcomeOf(verdict)]));
}

function wordFor(expected: Outcome | undefined): string {
  return expected?.kind === 'refused' ? 'refused' : 'same';
}

/** The webhook passes on every warning of injectPod, about the pod that an API server sends. */
async function warningFaults(
  ask: Ask,
  taken: readonly NamedPod[],
  verdicts: readonly Verdict[],
  options: InjectionOptions,
): Promise<string[]> {
  const sent = await ask(creations('plain', taken));
  return sent.flatMap(({ name, object }) => {
    const injection = object === undefined ? undefined : injectPod(object, options);
    const wanted = injection?.kind === 'injected' ? injection.warnings : [];
    const told = verdicts.find((verdict) => verdict.name === name)?.warnings ?? [];
    return wanted
      .filter((warning) => !told.includes(warning))
      .map((warning) => `${name}: the webhook does not warn: ${warning}`);
  });
}

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
function refusals(
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
