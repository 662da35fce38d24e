/** The list of wrong policies: how many fixtures notice each. */

import type { InjectionOptions } from '../../src/sidecar/injection/options.ts';
import { clusterOf } from './clusters.ts';
import { rendered } from './manifests.ts';
import type { NamedPod } from './outcome.ts';
import { type Ask, creations, expectedOf, faultsOf, outcomeOf, type Report } from './outcome.ts';
import { WEAKENINGS, weakened } from './weakened.ts';

/** Each wrong policy must give at least one fixture something else. */
export async function weakenedList(
  ask: Ask,
  fixtures: readonly NamedPod[],
  options: InjectionOptions,
): Promise<Report> {
  const expected = await expectedOf(ask, fixtures, options);
  const objects = rendered('policy');
  const clusters = Object.fromEntries(
    WEAKENINGS.map(({ name, piece, instead }) => [name, clusterOf(weakened(objects, piece, instead))]),
  );
  const verdicts = await ask(
    WEAKENINGS.flatMap(({ name }) => creations(name, fixtures)),
    clusters,
  );
  const lines = ['wrong policies, and how many fixtures notice'];
  const faults: string[] = [];
  for (const { name } of WEAKENINGS) {
    const noticed = verdicts.filter(
      (verdict) => verdict.cluster === name && faultsOf(expected.get(verdict.name), outcomeOf(verdict)).length > 0,
    ).length;
    if (noticed === 0) faults.push(`no fixture notices that ${name}`);
    lines.push(`  ${String(noticed).padStart(3)} ${name}`);
  }
  return { lines, faults };
}
