/** Judges rows: the figure, its spread, and whether the goal is met. Pure. */

import type { Outcome, RoundFigures } from './bench.ts';
import type { Contestant } from './contestant.ts';
import { chosen, earlierOf } from './contestants.ts';
import { GOALS, type Goal } from './goals.ts';
import { median, quantile } from './meter.ts';
import type { BenchOptions } from './run.ts';

/** A row counts when the middle half of its rounds lies within this share of its median. */
export const MAX_SPREAD = 0.1;
/** With fewer rounds a spread says nothing. */
const LEAST_ROUNDS = 4;

/** What was measured for a row: one value a round, or why there is none. */
export type Measurement = { readonly values: readonly number[] } | { readonly missing: string };

/** `-`: the row has no goal. */
export type Met = 'yes' | 'stretch' | 'no' | 'no: too wide' | 'no: too few rounds' | 'not available' | '-';

/** A judged row. */
export interface Row {
  readonly goal: Goal;
  /** The median of the rounds; undefined: not measured. */
  readonly now: number | undefined;
  /** Interquartile range of the rounds through their median. */
  readonly spread: number | undefined;
  readonly met: Met;
  /** Why nothing was measured. */
  readonly missing?: string;
}

/** Interquartile range through median; NaN without values. */
function spreadOf(values: readonly number[]): number {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / median(values);
}

/** The row of a goal. */
export function judge(goal: Goal, measured: Measurement): Row {
  if ('missing' in measured || measured.values.length === 0) {
    const missing = 'missing' in measured ? measured.missing : 'no round had both';
    return { goal, now: undefined, spread: undefined, met: 'not available', missing };
  }
  const { values } = measured;
  const now = median(values);
  const spread = spreadOf(values);
  return { goal, now, spread, met: metBy(goal, values.length, now, spread) };
}

function metBy({ goal, stretch, atLeast }: Goal, rounds: number, now: number, spread: number): Met {
  if (goal === undefined) return '-';
  if (rounds < LEAST_ROUNDS) return 'no: too few rounds';
  if (!(spread <= MAX_SPREAD)) return 'no: too wide';
  const reaches = (wanted: number): boolean => (atLeast === true ? now >= wanted : now <= wanted);
  if (stretch !== undefined && reaches(stretch)) return 'stretch';
  return reaches(goal) ? 'yes' : 'no';
}

/** Rows whose goal is missed. A row without a goal never fails a run. */
export function missed(rows: readonly Row[]): readonly Row[] {
  return rows.filter(({ goal, met }) => goal.goal !== undefined && met !== 'yes' && met !== 'stretch');
}

/**
 * The values of a row of turns, one for each round in which it and its peer took part; of rounds
 * that were repeated the last ones.
 */
export function valuesOf(goal: Goal, rounds: readonly (readonly RoundFigures[])[]): readonly number[] {
  const both = rounds.flatMap((turns) => {
    const own = turns.find(({ id }) => id === goal.of);
    const peer = goal.against === undefined ? own : turns.find(({ id }) => id === goal.against);
    return own === undefined || peer === undefined ? [] : [{ own, peer }];
  });
  const most = Math.max(...both.map(({ own }) => own.turns));
  return both.filter(({ own }) => own.turns === most).map(({ own, peer }) => figureOf(goal, own, peer));
}

function figureOf({ figure }: Goal, own: RoundFigures, peer: RoundFigures): number {
  switch (figure) {
    case 'cpu':
      return own.cpuNs / peer.cpuNs;
    case 'p50':
      return own.p50Ms / peer.p50Ms;
    case 'tail':
      return own.p99Ms / own.p50Ms;
    case 'measured':
      return Number.NaN;
  }
}

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

/** The rows of a suite of turns. */
export function rowsOf(goals: readonly Goal[], { rounds, missing }: Outcome): readonly Row[] {
  return goals.map((goal) => {
    const reason = missing.get(goal.of) ?? (goal.against === undefined ? undefined : missing.get(goal.against));
    return judge(goal, reason === undefined ? { values: valuesOf(goal, rounds) } : { missing: reason });
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
