/** Judges an overload run by its three phases. */

import type { LoadReport } from './load-task.ts';
import type { MachineUse } from './machine.ts';
import type { Watched } from './watchers.ts';

export type Phase = LoadReport & MachineUse;

/** The three phases of a run, and the watched routes meanwhile. */
export interface Measured {
  readonly capacity: Phase;
  readonly calm: Phase;
  readonly flooded: Phase;
  /** The load of the flood, in capacities. */
  readonly overload: number;
  readonly watched: readonly Watched[];
}

/** The goals: times of admitted calls, share of the capacity that was still served. */
const MAX_P99_RATIO = 5;
const MIN_GOODPUT = 0.8;

/** One goal, as text with its figures. */
export interface Judged {
  readonly met: boolean;
  readonly text: string;
}

export function judge({ capacity, calm, flooded, watched }: Measured): readonly Judged[] {
  const ratio = flooded.p99Ms / calm.p99Ms;
  const goodput = flooded.good / flooded.seconds / (capacity.good / capacity.seconds);
  const failed = watched.reduce((sum, route) => sum + route.failed, 0);
  const wrong = capacity.wrong + calm.wrong + flooded.wrong;
  const wrongest = flooded.wrongest ?? calm.wrongest ?? capacity.wrongest ?? '';
  return [
    judged(ratio <= MAX_P99_RATIO, `p99 of what was let in: ${ratio.toFixed(1)} x unloaded (goal ${MAX_P99_RATIO})`),
    judged(goodput >= MIN_GOODPUT, `goodput: ${percent(goodput)} of capacity (goal ${percent(MIN_GOODPUT)})`),
    judged(wrong === 0, `neither served nor 503 with Retry-After: ${wrong} ${wrongest}`),
    judged(failed === 0, `probes and discovery without 200: ${failed}`),
  ];
}

/**
 * The figures of the phases, and below each those of its kinds of calls where there are several.
 * Times in milliseconds. Under the names of processes: how much of a core each used. `others`: how
 * much of the machine other processes used; where that is much, the figures are not valid.
 */
export function table({ capacity, calm, flooded, overload, watched }: Measured): string {
  const processes = Object.keys(capacity.cores);
  const rows = [
    [
      '',
      'asked/s',
      'served/s',
      '503/s',
      'p50',
      'p99',
      '503 p99',
      ...processes,
      'others',
      'wrong',
      'unsent',
      'reopened',
    ],
    ...rowsOf('capacity (closed loop)', capacity),
    ...rowsOf('unloaded', calm),
    ...rowsOf(`${overload} x capacity`, flooded),
  ];
  const asked = watched.map(
    ({ what, asked: times, failed, p50Ms, worstMs }) =>
      `${what}: ${times} asked, ${failed} failed, p50 ${p50Ms.toFixed(1)} ms, worst ${worstMs.toFixed(0)} ms`,
  );
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0))) ?? [];
  const lines = rows.map((cells) => cells.map((cell, column) => cell.padStart(widths[column] ?? 0)).join('  '));
  return [...lines, ...asked].join('\n');
}

function rowsOf(title: string, phase: Phase): string[][] {
  const { good, busy, wrong, unsent, seconds, reopened, kinds } = phase;
  const rate = (count: number): string => (count / seconds).toFixed(0);
  const whole = [
    title,
    rate(good + busy + wrong + unsent),
    rate(good),
    rate(busy),
    phase.p50Ms.toFixed(1),
    phase.p99Ms.toFixed(1),
    busy === 0 ? '-' : phase.busyP99Ms.toFixed(1),
    ...Object.values(phase.cores).map(percent),
    percent(phase.othersShare),
    String(wrong),
    String(unsent),
    String(reopened),
  ];
  if (kinds.length < 2) return [whole];
  const each = kinds.map((one) => {
    const times = [one.p50Ms.toFixed(1), one.p99Ms.toFixed(1)];
    return [one.kind, rate(one.sent), rate(one.good), rate(one.sent - one.good), ...times];
  });
  return [whole, ...each];
}

function judged(met: boolean, text: string): Judged {
  return { met, text: `${met ? 'met   ' : 'MISSED'} ${text}` };
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
