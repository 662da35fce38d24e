/** The list of rules: what webhook and policy let pass. */

import type { InjectionOptions } from '../../src/sidecar/injection/options.ts';
import { type Ask, faultsOf, type Outcome, type Outcomes, outcomeOf, type Report, withDefaults } from './outcome.ts';
import { type Rule, rules } from './rules.ts';

/** Walks the rules. */
export async function ruleList(ask: Ask, options: InjectionOptions): Promise<Report> {
  const wanted = rules(options);
  const right = await rightOf(ask, wanted);
  const lines = ['rules'];
  const faults: string[] = [];
  for (const [name, wrong] of await walked(ask, wanted, right)) {
    faults.push(...wrong.map((fault) => `${name}: ${fault}`));
    const word = right.get(name)?.kind === 'refused' ? 'refused' : 'passes ';
    lines.push(`  ${wrong.length > 0 ? 'BROKEN ' : word} ${name}`);
  }
  return { lines, faults };
}

async function walked(
  ask: Ask,
  wanted: readonly Rule[],
  right: Outcomes,
): Promise<readonly (readonly [string, readonly string[]])[]> {
  const reviews = wanted.map(({ review }) => review);
  const verdicts = await ask(reviews);
  return reviews.map(({ name }, place) => {
    const verdict = verdicts[place];
    return [name, faultsOf(right.get(name), verdict === undefined ? undefined : outcomeOf(verdict))];
  });
}

/** What must come of each rule, with the defaults of the API server. */
function rightOf(ask: Ask, wanted: readonly Rule[]): Promise<Outcomes> {
  const outcomes = wanted.map(({ review: { name }, expected }): readonly [string, Outcome] => [
    name,
    'pod' in expected ? { kind: 'stored', pod: expected.pod } : { kind: 'refused', words: expected.words },
  ]);
  return withDefaults(ask, new Map(outcomes));
}
