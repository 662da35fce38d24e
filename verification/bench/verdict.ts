/** Judges rows: the figure, its spread, and whether the goal is met. Pure. */

import type { RoundFigures } from './bench.ts';
import type { Goal } from './goals.ts';
import { median, quantile } from './numbers.ts';

/** A row counts when the middle half of its rounds lies within this share of its median. */
export const MAX_SPREAD = 0.1;
/** With fewer rounds a spread says nothing. */
export const LEAST_ROUNDS = 4;

/** What was measured for a row: one value a round, or why there is none. */
export type Measurement = { readonly values: readonly number[] } | { readonly missing: string };

/** `-`: the row has no goal. */
export type Met = 'yes' | 'stretch' | 'no' | 'no: too wide' | 'no: too few rounds' | 'not available' | '-';

/** A judged row. */
export interface Row {
  readonly goal: Goal;
  /** The median of the rounds, or the worst where every one counts; undefined: not measured. */
  readonly now: number | undefined;
  /** Interquartile range of the rounds through their median. */
  readonly spread: number | undefined;
  readonly met: Met;
  /** Why nothing was measured. */
  readonly missing?: string;
}

/** Interquartile range through median; NaN without values. */
export function spreadOf(values: readonly number[]): number {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / median(values);
}

/** The row of a goal. */
export function judge(goal: Goal, measured: Measurement): Row {
  if ('missing' in measured || measured.values.length === 0) {
    const missing = 'missing' in measured ? measured.missing : 'no round had both';
    return { goal, now: undefined, spread: undefined, met: 'not available', missing };
  }
  const { values } = measured;
  const now = goal.every !== true ? median(values) : goal.atLeast === true ? Math.min(...values) : Math.max(...values);
  const spread = spreadOf(values);
  return { goal, now, spread, met: metBy(goal, values.length, now, spread) };
}

function metBy({ goal, stretch, atLeast, once }: Goal, rounds: number, now: number, spread: number): Met {
  if (goal === undefined) return '-';
  if (once !== true && rounds < LEAST_ROUNDS) return 'no: too few rounds';
  if (once !== true && !(spread <= MAX_SPREAD)) return 'no: too wide';
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
