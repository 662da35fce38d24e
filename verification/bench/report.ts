/** Compares contestants round by round, and writes table and history. */

import { cpus } from 'node:os';
import type { Turn } from './bench.ts';
import type { Contestant } from './contestant.ts';
import { median } from './numbers.ts';

/**
 * A contestant's CPU a request as a share of its peer's, computed in each round, where the machine
 * was the same for both.
 */
export interface Ratio {
  readonly against: string;
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
  readonly goal: number | undefined;
}

/** A contestant over all rounds; every figure is a median. */
export interface Standing extends Turn {
  readonly title: string;
  /** Undefined when its peer did not take part. */
  readonly ratio: Ratio | undefined;
}

/** Sums up the rounds, contestants in the given order. */
export function standings(
  contestants: readonly Contestant[],
  rounds: readonly (readonly Turn[])[],
): readonly Standing[] {
  return contestants.map(({ id, title, against }) => {
    const own = turnsOf(rounds, id);
    const middle = (figure: (turn: Turn) => number): number => median(own.map(figure));
    return {
      id,
      title,
      cpuNs: middle((turn) => turn.cpuNs),
      perSecond: middle((turn) => turn.perSecond),
      p50Ms: middle((turn) => turn.p50Ms),
      p99Ms: middle((turn) => turn.p99Ms),
      residentBytes: middle((turn) => turn.residentBytes),
      busy: middle((turn) => turn.busy),
      ratio: against === undefined ? undefined : ratio(own, turnsOf(rounds, against.id), against),
    };
  });
}

function turnsOf(rounds: readonly (readonly Turn[])[], id: string): readonly Turn[] {
  return rounds.flatMap((turns) => turns.filter((turn) => turn.id === id));
}

function ratio(
  own: readonly Turn[],
  peer: readonly Turn[],
  against: { readonly id: string; readonly goal?: number },
): Ratio | undefined {
  const shares = own.flatMap((turn, round) => {
    const other = peer[round];
    return other === undefined ? [] : [turn.cpuNs / other.cpuNs];
  });
  if (shares.length === 0) return undefined;
  return {
    against: against.id,
    median: median(shares),
    lowest: Math.min(...shares),
    highest: Math.max(...shares),
    goal: against.goal,
  };
}

const HEADINGS = [
  'contestant',
  'CPU us',
  'req/s',
  'p50 ms',
  'p99 ms',
  'RSS MB',
  'busy',
  'ratio (range)',
  'against',
  'goal',
];

/** The table to read. */
export function table(all: readonly Standing[]): string {
  const rows = [HEADINGS, ...all.map(row)];
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  return rows
    .map((cells) =>
      cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join('  '),
    )
    .join('\n');
}

function row(one: Standing): readonly string[] {
  const { ratio: share } = one;
  return [
    `${one.id}: ${one.title}`,
    (one.cpuNs / 1_000).toFixed(1),
    one.perSecond.toFixed(0),
    one.p50Ms.toFixed(2),
    one.p99Ms.toFixed(1),
    (one.residentBytes / 1_048_576).toFixed(0),
    `${(one.busy * 100).toFixed(0)} %`,
    share === undefined ? '-' : `${share.median.toFixed(2)} (${share.lowest.toFixed(2)}-${share.highest.toFixed(2)})`,
    share?.against ?? '-',
    share?.goal === undefined ? '-' : `<= ${share.goal.toFixed(2)}`,
  ];
}

/** One JSON line for a history: the figures and their conditions. */
export function historyLine(
  all: readonly Standing[],
  run: { readonly seconds: number; readonly rounds: number },
): string {
  return JSON.stringify(
    {
      at: new Date().toISOString(),
      node: process.version,
      cpu: cpus()[0]?.model,
      cores: cpus().length,
      ...run,
      contestants: all.map(({ title: _, ...figures }) => figures),
    },
    rounded,
  );
}

/** Two runs agree on fewer than four digits. */
function rounded(_name: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}
