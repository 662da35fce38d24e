/** Which rows a run has, and which contestants they need. */

import type { Outcome } from './bench.ts';
import type { Contestant } from './contestant.ts';
import { chosen, earlierOf } from './contestants.ts';
import { GOALS, type Goal } from './goals.ts';
import type { BenchOptions } from './options.ts';
import { judge, MAX_SPREAD, type Row, spreadOf, valuesOf } from './verdict.ts';

/** The rows of suites of turns, and the contestants that take turns for them. */
export interface Plan {
  readonly goals: readonly Goal[];
  readonly contestants: readonly Contestant[];
}

/**
 * What the command line asks for. A run beside an earlier gateway has a row without a goal for each
 * contestant. @throws Error when nothing is left
 */
export function planOf({ suites, only, before, quick }: BenchOptions): Plan {
  if (suites.length === 0) return { goals: [], contestants: [] };
  const wanted = GOALS.filter(({ figure, quick: matters }) => figure !== 'measured' && (!quick || matters === true));
  const own = new Set(wanted.map(({ of }) => of));
  const needed = new Set(wanted.flatMap(({ of, against }) => (against === undefined ? [of] : [of, against])));
  if (before !== undefined) {
    const all = chosen({ suites, only, before });
    const contestants = quick
      ? all.filter(({ id }) => [...own].some((one) => id === one || id === earlierOf(one)))
      : all;
    return { goals: contestants.flatMap(besideEarlier(contestants)), contestants };
  }
  const contestants = chosen({ suites, only }).filter(({ id }) => only !== undefined || needed.has(id));
  const present = new Set(contestants.map(({ id }) => id));
  const goals = wanted.filter(({ of, against }) => present.has(of) && (against === undefined || present.has(against)));
  return { goals, contestants };
}

function besideEarlier(all: readonly Contestant[]): (contestant: Contestant) => readonly Goal[] {
  return ({ id, suite, title }) => {
    const against = earlierOf(id);
    if (!all.some((one) => one.id === against)) return [];
    return [{ id, suite, what: title, of: id, against, figure: 'cpu' }];
  };
}

/** The rows of a suite of turns, over all starts of its processes. */
export function rowsOf(goals: readonly Goal[], outcomes: readonly Outcome[]): readonly Row[] {
  const missing = new Map(outcomes.flatMap((outcome) => [...outcome.missing]));
  return goals.map((goal) => {
    const reason = missing.get(goal.of) ?? (goal.against === undefined ? undefined : missing.get(goal.against));
    return judge(
      goal,
      reason === undefined ? { values: outcomes.flatMap(({ rounds }) => valuesOf(goal, rounds)) } : { missing: reason },
    );
  });
}

/**
 * The contestants of rows that are too wide to count. Where rows have goals, those without one are
 * left as they are.
 */
export function tooWide(goals: readonly Goal[], rounds: Outcome['rounds']): ReadonlySet<string> {
  const withGoal = goals.filter(({ goal }) => goal !== undefined);
  const counted = withGoal.length > 0 ? withGoal : goals;
  const wide = counted.filter((goal) => spreadOf(valuesOf(goal, rounds)) > MAX_SPREAD);
  return new Set(wide.flatMap(({ of, against }) => (against === undefined ? [of] : [of, against])));
}
