/** Measures the guard of sold paths beside the parser of URLs, in turns of one run. */

import { createPathGuard } from '../../src/passthrough/path-guard.ts';
import { SOLD } from './gateway.ts';

const judge = createPathGuard(SOLD);

const USUAL: Readonly<Record<string, string>> = {
  plain: '/files/2024/summary.html?x=1&y=2',
  'plain, with escaped letters': '/caf%C3%A9/Menu?x=1',
  odd: '/@scope%2fname;v=1',
};

/** What a caller repeats who wants a target to be expensive, and how its path ends. */
const MALICE: Readonly<Record<string, readonly [repeated: string, end: string]>> = {
  'the first literal of two': ['orders/', ';'],
  'overlong letters': ['%c1%b2', ''],
  'escaped percents': ['%25', ''],
  ligatures: ['%EF%B7%BA', ';'],
  slashes: ['/', ''],
  'spaces and dots': ['%20.', '/x'],
  'sold paths, then another': ['prices.csv.', 'x'],
  'units of Windows': ['%u0072', ''],
};
const MALICE_BYTES = 8_000;

/** Microseconds a target. */
export interface GuardCost {
  readonly name: string;
  readonly guard: number;
  readonly url: number;
}

/** Measures every target; medians. */
export function guardCosts(): readonly GuardCost[] {
  const malice = Object.keys(MALICE).map((name): [string, string] => [`${name}, 8 kB`, malicious(name, MALICE_BYTES)]);
  return [...Object.entries(USUAL), ...malice].map(([name, target]) => {
    const rounds = Array.from({ length: 15 }, () => [
      microseconds(() => judge(target), 10),
      microseconds(() => URL.parse(`http://shop.test${target}`), 10),
    ]);
    const median = (at: 0 | 1): number => rounds.map((round) => round[at] ?? 0).sort((a, b) => a - b)[7] ?? 0;
    return { name, guard: median(0), url: median(1) };
  });
}

/** How much longer eight times as many bytes take: 8 where the work is as long as the target. */
export function growths(): readonly { readonly name: string; readonly growth: number }[] {
  return Object.keys(MALICE).map((name) => {
    const targets = [MALICE_BYTES / 8, MALICE_BYTES].map((bytes) => malicious(name, bytes));
    // In turns: a busy machine makes single measurements longer.
    const rounds = Array.from({ length: 10 }, () => targets.map((target) => microseconds(() => judge(target), 3)));
    const least = (at: 0 | 1): number => Math.min(...rounds.map((round) => round[at] ?? 0));
    return { name, growth: least(1) / least(0) };
  });
}

function malicious(name: string, bytes: number): string {
  const [repeated = '', end = ''] = MALICE[name] ?? [];
  return `/${repeated.repeat(Math.floor((bytes - 1 - end.length) / repeated.length))}${end}`;
}

function microseconds(run: () => unknown, forMs: number): number {
  // Time of this thread, which other processes do not lengthen.
  const start = process.threadCpuUsage();
  const used = (): number => {
    const { user, system } = process.threadCpuUsage(start);
    return user + system;
  };
  let times = 0;
  for (; times === 0 || used() < forMs * 1_000; times += 1) run();
  return used() / times;
}
