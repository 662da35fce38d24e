/** Writes what was measured: contestants, rows, and one line for a history. */

import { cpus } from 'node:os';
import type { Outcome, RoundFigures } from './bench.ts';
import type { Contestant } from './contestant.ts';
import { median } from './numbers.ts';
import { MAX_SPREAD, type Row } from './verdict.ts';

/** A contestant over all rounds; every figure is a median. */
export interface Standing extends RoundFigures {
  readonly title: string;
}

/** Sums up the rounds, contestants in the given order; those that did not run are left out. */
export function standings(contestants: readonly Contestant[], rounds: Outcome['rounds']): readonly Standing[] {
  return contestants.flatMap(({ id, title }) => {
    const all = rounds.flatMap((turns) => turns.filter((turn) => turn.id === id));
    const turns = Math.max(...all.map((one) => one.turns));
    const own = all.filter((one) => one.turns === turns);
    if (own.length === 0) return [];
    const middle = (figure: (turn: RoundFigures) => number): number => median(own.map(figure));
    return [
      {
        id,
        turns,
        title,
        cpuNs: middle((turn) => turn.cpuNs),
        perSecond: middle((turn) => turn.perSecond),
        p50Ms: middle((turn) => turn.p50Ms),
        p99Ms: middle((turn) => turn.p99Ms),
        residentBytes: middle((turn) => turn.residentBytes),
        busy: middle((turn) => turn.busy),
        loadNs: middle((turn) => turn.loadNs),
      },
    ];
  });
}

const CONTESTANT_HEADINGS = ['contestant', 'CPU us', 'req/s', 'p50 ms', 'p99 ms', 'RSS MB', 'busy', 'load us'];

/** What each contestant of a suite did. */
export function contestantTable(all: readonly Standing[]): string {
  return aligned([
    CONTESTANT_HEADINGS,
    ...all.map((one) => [
      `${one.id}: ${one.title}`,
      (one.cpuNs / 1_000).toFixed(1),
      one.perSecond.toFixed(0),
      one.p50Ms.toFixed(2),
      one.p99Ms.toFixed(1),
      (one.residentBytes / 1_048_576).toFixed(0),
      `${(one.busy * 100).toFixed(0)} %`,
      (one.loadNs / 1_000).toFixed(1),
    ]),
  ]);
}

const ROW_HEADINGS = ['row', 'peer', 'now', 'goal', 'stretch', 'spread', 'met'];

/** The rows, with the exact program of each peer. */
export function goalTable(rows: readonly Row[], contestants: readonly Contestant[]): string {
  const titles = new Map(contestants.map(({ id, title }) => [id, title]));
  return aligned([
    ROW_HEADINGS,
    ...rows.map(({ goal, now, spread, met, missing }) => [
      `${goal.id}: ${goal.what}`,
      (goal.against === undefined ? goal.peer : titles.get(goal.against)) ?? '-',
      figure(now),
      limit(goal.goal, goal.atLeast),
      limit(goal.stretch, goal.atLeast),
      spread === undefined ? '-' : `${(spread * 100).toFixed(0)} %${spread > MAX_SPREAD ? '!' : ''}`,
      missing === undefined ? met : `${met}: ${missing}`,
    ]),
  ]);
}

/** Three digits tell enough of a ratio; counts are whole. */
function figure(value: number | undefined): string {
  if (value === undefined) return '-';
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function limit(value: number | undefined, atLeast: true | undefined): string {
  return value === undefined ? '-' : `${atLeast === true ? '>=' : '<='} ${value}`;
}

/** Columns of words to the left, of numbers to the right. */
function aligned(rows: readonly (readonly string[])[]): string {
  const [headings = []] = rows;
  const widths = headings.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  const words = (column: number): boolean => column === 0 || ['peer', 'met'].includes(headings[column] ?? '');
  return rows
    .map((cells) =>
      cells
        .map((cell, at) => (words(at) ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** One JSON line for a history: the figures and their conditions. */
export function historyLine(
  rows: readonly Row[],
  contestants: readonly Standing[],
  run: { readonly seconds: number; readonly rounds: number; readonly warmUpSeconds: number },
): string {
  return JSON.stringify(
    {
      at: new Date().toISOString(),
      node: process.version,
      cpu: cpus()[0]?.model,
      cores: cpus().length,
      ...run,
      rows: rows.map(({ goal, now, spread, met }) => ({ id: goal.id, now, spread, goal: goal.goal, met })),
      contestants: contestants.map(({ title: _, ...figures }) => figures),
    },
    rounded,
  );
}

/** Two runs agree on fewer than four digits. */
function rounded(_name: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}
