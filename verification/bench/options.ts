/** The command line of the benchmark. */

import { parseArgs } from 'node:util';
import { SUITES, type Suite } from './contestant.ts';
import { MEASURED_SUITES, type RowSuite } from './goals.ts';

/** How a benchmark is run. */
export interface BenchOptions {
  /** Length of one turn of one contestant. */
  readonly seconds: number;
  /** Turns of each contestant; even, so that every one is as often early as late. */
  readonly rounds: number;
  /** How often the processes of a suite are started anew, each time for all rounds. */
  readonly starts: number;
  /** How long each process is asked before its first round. */
  readonly warmUpSeconds: number;
  /** How often the rounds of rows that are too wide are taken again, with longer turns. */
  readonly repeats: number;
  /** Which suites of turns. */
  readonly suites: readonly Suite[];
  /** Which suites that measure in other ways. */
  readonly measured: readonly MeasuredSuite[];
  /** Only the rows that matter most. */
  readonly quick: boolean;
  /** Ids of the contestants; undefined: all. */
  readonly only: readonly string[] | undefined;
  /** Entry of an earlier gateway, src/main.ts or a bundle; undefined: the peers. */
  readonly before: string | undefined;
  /** Where a CPU profile of each contestant is written; it costs a little CPU itself. */
  readonly profile: string | undefined;
}

export type MeasuredSuite = (typeof MEASURED_SUITES)[number];

const ALL: readonly RowSuite[] = [...SUITES, ...MEASURED_SUITES];

export const USAGE = `node verification/bench/run.ts [options]

  --quick         the rows that matter most in a minute: shorter turns and warm-up, no repeats
  --suite A,B     some of ${ALL.join(', ')}
  --only A,B      these contestants only; a ratio needs its peer
  --before FILE   each gateway beside an earlier one (its src/main.ts or its bundle), no peers
  --seconds N     length of a turn (default 1, at most 30)
  --rounds N      turns of each contestant (default 6, at most 50)
  --starts N      processes are started N times, each time for all rounds: what compiles well once
                  may compile otherwise the next time (default 1, at most 20)
  --warm-up N     seconds that each process is asked before its first round (default 10)
  --profile DIR   also write a V8 CPU profile of each contestant there

GATEWAY_ENTRY names another entry than the bundle that is built for the run.
`;

const DEFAULTS = { seconds: 1, rounds: 6, starts: 1, warmUpSeconds: 10, repeats: 2 };
const QUICK = { seconds: 0.5, rounds: 4, starts: 1, warmUpSeconds: 2, repeats: 0 };
const MAX_SECONDS = 30;
const MAX_ROUNDS = 50;
const MAX_STARTS = 20;

/** Reads the command line. @throws Error with the mistake */
export function readOptions(args: readonly string[]): BenchOptions | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      starts: { type: 'string' },
      'warm-up': { type: 'string' },
      suite: { type: 'string' },
      only: { type: 'string' },
      before: { type: 'string' },
      profile: { type: 'string' },
      quick: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return 'help';
  const quick = values.quick === true;
  const preset = quick ? QUICK : DEFAULTS;
  const seconds = Number(values.seconds ?? preset.seconds);
  const rounds = Number(values.rounds ?? preset.rounds);
  const starts = Number(values.starts ?? preset.starts);
  const warmUpSeconds = Number(values['warm-up'] ?? preset.warmUpSeconds);
  for (const [name, value] of [
    ['--seconds', seconds],
    ['--warm-up', warmUpSeconds],
  ] as const)
    if (!(value > 0 && value <= MAX_SECONDS)) throw new Error(`${name}: more than 0, at most ${MAX_SECONDS}`);
  if (!(Number.isInteger(rounds) && rounds > 0 && rounds <= MAX_ROUNDS))
    throw new Error(`--rounds: a whole number from 1 to ${MAX_ROUNDS}`);
  if (!(Number.isInteger(starts) && starts > 0 && starts <= MAX_STARTS))
    throw new Error(`--starts: a whole number from 1 to ${MAX_STARTS}`);
  const { before, profile } = values;
  const only = values.only?.split(',');
  const named = suitesOf(values.suite?.split(','));
  return {
    seconds,
    rounds,
    starts,
    warmUpSeconds,
    repeats: preset.repeats,
    suites: SUITES.filter((suite) => named.includes(suite)),
    // Contestants, and an earlier gateway, are those of the suites of turns.
    measured:
      only === undefined && (values.suite !== undefined || (before === undefined && !quick))
        ? MEASURED_SUITES.filter((suite) => named.includes(suite))
        : [],
    quick,
    only,
    before,
    profile,
  };
}

function suitesOf(names: readonly string[] | undefined): readonly RowSuite[] {
  if (names === undefined) return ALL;
  return names.map((name) => {
    const suite = ALL.find((known) => known === name);
    if (suite === undefined) throw new Error(`--suite: ${name} is none of ${ALL.join(', ')}`);
    return suite;
  });
}
