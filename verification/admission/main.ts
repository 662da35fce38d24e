/**
 * Judges every way of injection by the admission code of a kube-apiserver:
 * `node verification/admission/main.ts [--pods 300] [--seed 7] [--ways inject,component,webhook,policy]`.
 * Exit code 1 unless each gives every pod what injectPod gives it, the rules hold, and whatever is
 * taken away from a policy is noticed.
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { ARBITRARY_MEDDLING, ARBITRARY_POD, meddled } from '../../spec/sidecar/injection/arbitrary-pods.ts';
import { POD_FIXTURES } from '../../spec/sidecar/injection/fixtures.ts';
import { temporaryDirectory } from '../../spec/support/temporary-directory.ts';
import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import { OPT_IN_LABEL } from '../../src/sidecar/injection/names.ts';
import type { InjectionOptions } from '../../src/sidecar/injection/options.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import { clusterOf, clustersOfPolicies, FREE, withoutInjection } from './clusters.ts';
import { type Cluster, judge, judgeProgram, type Review, type Verdict } from './judge.ts';
import { mountParameters, optionsAt, rendered } from './manifests.ts';
import { faultsOf, type Outcome, outcomeOf } from './outcome.ts';
import { type Rule, rules } from './rules.ts';
import { commanded, componentRendered, type NamedPod } from './ways.ts';
import { WEAKENINGS, weakened, without } from './weakened.ts';
import { startWebhook } from './webhook.ts';

const { values } = parseArgs({
  options: {
    pods: { type: 'string', default: '300' },
    seed: { type: 'string', default: '7' },
    ways: { type: 'string', default: 'inject,component,webhook,policy' },
  },
});
const chosen = new Set(values.ways.split(','));
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const faults: string[] = [];

await using ends = new AsyncDisposableStack();
const program = broughtJudge();
if (program === undefined) process.exitCode = 1;
else await run(program);

function broughtJudge(): string | undefined {
  try {
    return judgeProgram(say);
  } catch (error) {
    say(`verify-admission cannot run here: ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
}

async function run(judgeAt: string): Promise<void> {
  const mounted = await temporaryDirectory(ends, 'admission-');
  mountParameters(mounted);
  const options = optionsAt(mounted);
  const file = join(await temporaryDirectory(ends, 'admission-'), 'options.yaml');
  writeFileSync(file, JSON.stringify(options));
  const clusters = { ...clustersOfPolicies(), ...(chosen.has('webhook') ? await startWebhook(ends, mounted) : {}) };
  const asked = async (reviews: readonly Review[], more: Readonly<Record<string, Cluster>> = {}) =>
    judge(judgeAt, { ...clusters, ...more }, reviews);

  const fixtures = POD_FIXTURES.map(({ name, pod }) => ({ name, pod }));
  const expected = await expectedOf(asked, fixtures, options);
  await fixtureTable(asked, fixtures, expected, file);
  await ruleList(asked, options);
  await generated(asked, options);
  await weakenings(asked, fixtures, expected);

  say(faults.length === 0 ? '\nevery way gives what injectPod gives' : `\n${faults.length} faults`);
  for (const fault of faults) say(`  ${fault}`);
  process.exitCode = faults.length === 0 ? 0 : 1;
}

type Asked = (reviews: readonly Review[], more?: Readonly<Record<string, Cluster>>) => Promise<readonly Verdict[]>;

function creations(cluster: string, pods: readonly NamedPod[]): readonly Review[] {
  return pods.map(({ name, pod }) => ({ name, cluster, namespace: FREE, operation: 'CREATE', object: pod }));
}

/** What injectPod makes of the pods, with the defaults of the API server. */
async function expectedOf(
  asked: Asked,
  pods: readonly NamedPod[],
  options: InjectionOptions,
): Promise<ReadonlyMap<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  const injected: NamedPod[] = [];
  for (const { name, pod } of pods) {
    const injection = injectPod(pod, options);
    if (injection.kind === 'injected') injected.push({ name, pod: injection.pod });
    else outcomes.set(name, { kind: 'refused', words: injection.message });
  }
  for (const verdict of await asked(creations('plain', injected))) outcomes.set(verdict.name, outcomeOf(verdict));
  return outcomes;
}

/** The same with the defaults of the API server filled in, as far as they are stored pods. */
async function withDefaults(
  asked: Asked,
  outcomes: ReadonlyMap<string, Outcome>,
): Promise<ReadonlyMap<string, Outcome>> {
  const stored = [...outcomes].flatMap(([name, outcome]) =>
    outcome.kind === 'stored' ? [{ name, pod: outcome.pod }] : [],
  );
  const verdicts = await asked(creations('plain', stored));
  return new Map([...outcomes, ...verdicts.map((verdict) => [verdict.name, outcomeOf(verdict)] as const)]);
}

async function fixtureTable(
  asked: Asked,
  fixtures: readonly NamedPod[],
  expected: ReadonlyMap<string, Outcome>,
  file: string,
): Promise<void> {
  const isRefused = ({ name }: NamedPod): boolean => expected.get(name)?.kind === 'refused';
  const taken = fixtures.filter((fixture) => !isRefused(fixture));
  const ways: Readonly<Record<string, ReadonlyMap<string, Outcome>>> = {
    ...(chosen.has('inject')
      ? { 'acg inject': await withDefaults(asked, commanded(taken, fixtures.filter(isRefused), file)) }
      : {}),
    ...(chosen.has('component') ? { component: await withDefaults(asked, await componentRendered(taken, file)) } : {}),
    ...(chosen.has('webhook') ? { webhook: outcomesOf(await asked(creations('webhook', fixtures))) } : {}),
    ...(chosen.has('policy') ? { policy: outcomesOf(await asked(creations('policy', fixtures))) } : {}),
  };
  const names = Object.keys(ways);
  say(`| fixture | ${names.join(' | ')} |`);
  say(`|${' --- |'.repeat(1 + names.length)}`);
  for (const { name } of fixtures) {
    const cells = names.map((way) => cell(name, way, expected.get(name), ways[way]?.get(name)));
    say(`| ${[name, ...cells].join(' | ')} |`);
  }
}

function outcomesOf(verdicts: readonly Verdict[]): ReadonlyMap<string, Outcome> {
  return new Map(verdicts.map((verdict) => [verdict.name, outcomeOf(verdict)]));
}

function cell(fixture: string, way: string, expected: Outcome | undefined, actual: Outcome | undefined): string {
  if (expected === undefined || actual === undefined) {
    faults.push(`${fixture} by ${way}: not judged`);
    return 'not judged';
  }
  const wrong = faultsOf(expected, actual);
  faults.push(...wrong.map((fault) => `${fixture} by ${way}: ${fault}`));
  if (wrong.length > 0) return 'DIFFERS';
  return expected.kind === 'refused' ? 'refused' : 'same';
}

async function ruleList(asked: Asked, options: InjectionOptions): Promise<void> {
  say('\nrules');
  const wanted = rules(options);
  const right = await rightOf(asked, wanted);
  const verdicts = await asked(wanted.map(({ review }) => review));
  for (const [place, { review }] of wanted.entries()) {
    const wrong = ruleFaults(right.get(review.name), verdicts[place]);
    faults.push(...wrong.map((fault) => `${review.name}: ${fault}`));
    const told = right.get(review.name)?.kind === 'refused' ? 'refused' : 'passes ';
    say(`  ${wrong.length > 0 ? 'BROKEN ' : told} ${review.name}`);
  }
  say('\nrules that break without the validation that says');
  const objects = rendered('policy');
  for (const { name, objects: unguarded } of without(objects)) {
    const clusters = { policy: clusterOf(unguarded), guard: clusterOf(withoutInjection(unguarded)) };
    const tried = wanted.filter(({ review }) => review.cluster in clusters);
    const found = await asked(
      tried.map(({ review }) => review),
      clusters,
    );
    const broken = tried.filter(({ review }, place) => ruleFaults(right.get(review.name), found[place]).length > 0);
    if (broken.length === 0) faults.push(`no rule notices that nothing says: ${name}`);
    say(`  ${String(broken.length).padStart(3)} ${name}`);
  }
}

/** What must come of each rule, with the defaults of the API server. */
async function rightOf(asked: Asked, wanted: readonly Rule[]): Promise<ReadonlyMap<string, Outcome>> {
  const outcomes = wanted.map(({ review: { name }, expected }): readonly [string, Outcome] => [
    name,
    'pod' in expected ? { kind: 'stored', pod: expected.pod } : { kind: 'refused', words: expected.words },
  ]);
  return withDefaults(asked, new Map(outcomes));
}

function ruleFaults(right: Outcome | undefined, verdict: Verdict | undefined): readonly string[] {
  return right === undefined || verdict === undefined ? ['not judged'] : faultsOf(right, outcomeOf(verdict));
}

/** Pods as people write them, and the injected ones again after others changed them. */
async function generated(asked: Asked, options: InjectionOptions): Promise<void> {
  const [count, seed] = [Number(values.pods), Number(values.seed)];
  const changes = fc.sample(ARBITRARY_MEDDLING, { numRuns: count, seed });
  const pods = fc.sample(ARBITRARY_POD, { numRuns: count, seed }).flatMap((written, place): readonly NamedPod[] => {
    const pod = asking(written);
    const injection = injectPod(pod, options);
    const change = changes[place];
    if (injection.kind === 'refused' || change === undefined) return [{ name: `${place}`, pod }];
    const again = meddled(injection.pod, change);
    return [
      { name: `${place}`, pod },
      { name: `${place}, changed and injected again`, pod: again },
      {
        name: `${place}, injected again without probes`,
        pod: annotated(again, 'agent-commerce.dev/rewrite-probes', 'false'),
      },
    ];
  });
  const expected = await expectedOf(asked, pods, options);
  say(`\n${pods.length} generated pods, seed ${seed}`);
  for (const way of ['policy', 'webhook'].filter((each) => chosen.has(each))) {
    const verdicts = await asked(creations(way, pods));
    const wrong = verdicts.flatMap((verdict) => {
      const right = expected.get(verdict.name);
      const found = right === undefined ? ['not judged'] : faultsOf(right, outcomeOf(verdict));
      return found.map((fault) => `generated pod ${verdict.name} by ${way}: ${fault}`);
    });
    faults.push(...wrong);
    const refused = verdicts.filter((verdict) => verdict.refused !== undefined).length;
    say(
      `  ${way.padEnd(8)} ${verdicts.length - refused} same, ${refused} refused alike, ${wrong.length} faults; ${cost(verdicts)}`,
    );
  }
}

function asking(pod: Pod): Pod {
  return { ...pod, metadata: { ...pod.metadata, labels: { ...pod.metadata?.labels, [OPT_IN_LABEL]: 'enabled' } } };
}

function annotated(pod: Pod, key: string, value: string): Pod {
  return { ...pod, metadata: { ...pod.metadata, annotations: { ...pod.metadata?.annotations, [key]: value } } };
}

function cost(verdicts: readonly Verdict[]): string {
  const median = (figures: readonly number[]): string => {
    const sorted = figures.toSorted((a, b) => a - b);
    return ((sorted[Math.floor(sorted.length / 2)] ?? 0) / 1_000).toFixed(1);
  };
  const taken = verdicts.filter((verdict) => verdict.object !== undefined);
  const mutated = median(taken.map(({ mutateMicros }) => mutateMicros));
  return `median ${mutated} ms to mutate, ${median(taken.map(({ validateMicros }) => validateMicros))} ms to validate`;
}

/** Each wrong policy must give at least one fixture something else. */
async function weakenings(
  asked: Asked,
  fixtures: readonly NamedPod[],
  expected: ReadonlyMap<string, Outcome>,
): Promise<void> {
  say('\nwrong policies, and how many fixtures notice');
  const objects = rendered('policy');
  const wrong = Object.fromEntries(
    WEAKENINGS.map(({ name, piece, instead }) => [name, clusterOf(weakened(objects, piece, instead))]),
  );
  const verdicts = await asked(
    WEAKENINGS.flatMap(({ name }) => creations(name, fixtures)),
    wrong,
  );
  for (const { name } of WEAKENINGS) {
    const noticed = verdicts.filter((verdict) => {
      const right = expected.get(verdict.name);
      return verdict.cluster === name && right !== undefined && faultsOf(right, outcomeOf(verdict)).length > 0;
    }).length;
    if (noticed === 0) faults.push(`no fixture notices that ${name}`);
    say(`  ${String(noticed).padStart(3)} ${name}`);
  }
}
