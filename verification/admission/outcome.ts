/** What a way of injection made of a pod, and whether that is what injectPod makes of it. */

import { isDeepStrictEqual } from 'node:util';
import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import { ENV_HOOK_KEY, hookHeader } from '../../src/sidecar/injection/names.ts';
import type { InjectionOptions } from '../../src/sidecar/injection/options.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { FREE } from './clusters.ts';
import type { Review, Verdict } from './judge.ts';

/** A pod of a run, by the name of its case. */
export interface NamedPod {
  readonly name: string;
  readonly pod: Pod;
}

/** A stored pod with its defaults, or the words of a refusal. */
export type Outcome =
  | { readonly kind: 'stored'; readonly pod: Pod }
  | { readonly kind: 'refused'; readonly words: string };

/** Outcomes by the name of the case. */
export type Outcomes = ReadonlyMap<string, Outcome>;

/** Puts reviews to the clusters of the run, or to `more`, in one process. */
export type Ask = (reviews: readonly Review[]) => Promise<readonly Verdict[]>;

/** What a part of a run found. */
export interface Report {
  readonly lines: readonly string[];
  readonly faults: readonly string[];
}

/** One creation for each pod. */
export function creations(cluster: string, pods: readonly NamedPod[]): readonly Review[] {
  return pods.map(({ name, pod }) => ({ name, cluster, namespace: FREE, operation: 'CREATE', object: pod }));
}

/** The outcome that a verdict tells, without the hook key that the webhook makes for each pod. */
export function outcomeOf({ object, refused }: Verdict): Outcome {
  if (object !== undefined) return { kind: 'stored', pod: withoutHookKey(object) };
  return { kind: 'refused', words: refused ?? 'no verdict' };
}

function withoutHookKey(pod: Pod): Pod {
  const { initContainers = [] } = pod.spec;
  const key = initContainers.flatMap(({ env = [] }) => env).find(({ name }) => name === ENV_HOOK_KEY)?.value;
  if (key === undefined) return pod;
  const { spec, ...rest } = JSON.parse(JSON.stringify(pod).replaceAll(key, hookHeader().value)) as Pod;
  const unkeyed = spec.initContainers?.map((each) =>
    each.env === undefined ? each : { ...each, env: each.env.filter(({ name }) => name !== ENV_HOOK_KEY) },
  );
  return { ...rest, spec: { ...spec, initContainers: unkeyed ?? [] } };
}

/** The same outcomes with the defaults of the API server, where they are stored pods. */
export async function withDefaults(ask: Ask, outcomes: Outcomes): Promise<Outcomes> {
  const stored = [...outcomes].flatMap(([name, outcome]) =>
    outcome.kind === 'stored' ? [{ name, pod: outcome.pod }] : [],
  );
  const verdicts = await ask(creations('plain', stored));
  return new Map([...outcomes, ...verdicts.map((verdict) => [verdict.name, outcomeOf(verdict)] as const)]);
}

/** What injectPod makes of the pods, with the defaults of the API server. */
export function expectedOf(ask: Ask, pods: readonly NamedPod[], options: InjectionOptions): Promise<Outcomes> {
  return withDefaults(
    ask,
    new Map(
      pods.map(({ name, pod }): readonly [string, Outcome] => {
        const injection = injectPod(pod, options);
        if (injection.kind === 'injected') return [name, { kind: 'stored', pod: injection.pod }];
        return [name, { kind: 'refused', words: injection.message }];
      }),
    ),
  );
}

/**
 * What is wrong, one line each; empty when it is what was expected. A refusal may be framed in
 * more words.
 */
export function faultsOf(expected: Outcome | undefined, actual: Outcome | undefined): readonly string[] {
  if (expected === undefined || actual === undefined) return ['not judged'];
  if (expected.kind === 'stored' && actual.kind === 'stored') return differences(expected.pod, actual.pod);
  if (expected.kind === 'refused' && actual.kind === 'refused' && actual.words.includes(expected.words)) return [];
  return [`expected ${told(expected)}`, `came ${told(actual)}`];
}

function told(outcome: Outcome): string {
  return outcome.kind === 'stored' ? 'a stored pod' : `a refusal: ${outcome.words.slice(-400)}`;
}

const MAX_SHOWN = 120;

/** What differs, one line for each member: its path, what was expected, what came. */
export function differences(expected: unknown, actual: unknown, path = ''): readonly string[] {
  if (isDeepStrictEqual(expected, actual)) return [];
  if (!hasMembers(expected) || !hasMembers(actual) || Array.isArray(expected) !== Array.isArray(actual))
    return [`${path || 'object'}: expected ${shown(expected)}, came ${shown(actual)}`];
  const names = new Set([...Object.keys(expected), ...Object.keys(actual)]);
  return [...names].flatMap((name) =>
    differences(expected[name], actual[name], path === '' ? name : `${path}.${name}`),
  );
}

function hasMembers(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN - 1)}…`;
}
