/** Generated pods through policy and webhook: as written, and injected ones that others changed. */

import fc from 'fast-check';
import { ARBITRARY_MEDDLING, ARBITRARY_POD, meddled } from '../../spec/sidecar/injection/arbitrary-pods.ts';
import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import { OPT_IN_LABEL, OPT_IN_VALUE, REWRITE_PROBES } from '../../src/sidecar/injection/names.ts';
import type { InjectionOptions } from '../../src/sidecar/injection/options.ts';
import type { Pod } from '../../src/sidecar/injection/pod.ts';
import type { Verdict } from './judge.ts';
import type { NamedPod } from './outcome.ts';
import { type Ask, creations, expectedOf, faultsOf, outcomeOf, type Report } from './outcome.ts';

/** Judges both ways that see each pod in a cluster. */
export async function generatedPods(
  ask: Ask,
  options: InjectionOptions,
  { count, seed }: { readonly count: number; readonly seed: number },
): Promise<Report> {
  const pods = generate(options, count, seed);
  const expected = await expectedOf(ask, pods, options);
  const lines = [`${pods.length} generated pods, seed ${seed}`];
  const faults: string[] = [];
  for (const way of ['policy', 'webhook']) {
    const verdicts = await ask(creations(way, pods));
    const wrong = verdicts.flatMap((verdict) =>
      faultsOf(expected.get(verdict.name), outcomeOf(verdict)).map(
        (fault) => `generated pod ${verdict.name} by ${way}: ${fault}`,
      ),
    );
    faults.push(...wrong);
    const refused = verdicts.filter((verdict) => verdict.refused !== undefined).length;
    const counts = `${verdicts.length - refused} stored, ${refused} refused, ${wrong.length} faults`;
    lines.push(`  ${way.padEnd(8)} ${counts}; ${cost(verdicts)}`);
  }
  return { lines, faults };
}

function generate(options: InjectionOptions, count: number, seed: number): readonly NamedPod[] {
  const changes = fc.sample(ARBITRARY_MEDDLING, { numRuns: count, seed });
  return fc.sample(ARBITRARY_POD, { numRuns: count, seed }).flatMap((written, place): readonly NamedPod[] => {
    const pod = asking(written);
    const injection = injectPod(pod, options);
    const change = changes[place];
    if (injection.kind === 'refused' || change === undefined) return [{ name: `${place}`, pod }];
    const again = meddled(injection.pod, change);
    return [
      { name: `${place}`, pod },
      { name: `${place}, changed and injected again`, pod: again },
      { name: `${place}, injected again without probes`, pod: keepingProbes(again) },
    ];
  });
}

function asking(pod: Pod): Pod {
  return { ...pod, metadata: { ...pod.metadata, labels: { ...pod.metadata?.labels, [OPT_IN_LABEL]: OPT_IN_VALUE } } };
}

function keepingProbes(pod: Pod): Pod {
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations: { ...pod.metadata?.annotations, [REWRITE_PROBES]: 'false' } },
  };
}

function cost(verdicts: readonly Verdict[]): string {
  const stored = verdicts.filter((verdict) => verdict.object !== undefined);
  const mutated = medianMs(stored.map(({ mutateMicros }) => mutateMicros));
  return `median ${mutated} ms to mutate, ${medianMs(stored.map(({ validateMicros }) => validateMicros))} ms to validate`;
}

function medianMs(micros: readonly number[]): string {
  const sorted = micros.toSorted((a, b) => a - b);
  return ((sorted[Math.floor(sorted.length / 2)] ?? 0) / 1_000).toFixed(1);
}
