/** The table of fixtures: what each way of injection makes of each pod. */

import { injectPod } from '../../src/sidecar/injection/inject-pod.ts';
import type { InjectionOptions } from '../../src/sidecar/injection/options.ts';
import type { Verdict } from './judge.ts';
import type { NamedPod } from './outcome.ts';
import {
  type Ask,
  creations,
  expectedOf,
  faultsOf,
  type Outcome,
  type Outcomes,
  outcomeOf,
  type Report,
  withDefaults,
} from './outcome.ts';
import { commanded, refusals, rendered } from './ways.ts';

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
