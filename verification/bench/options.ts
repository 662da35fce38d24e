/** The command line of the benchmark. */

import { parseArgs } from 'node:util';
import { START_SUITE, SUITES, type Suite } from './contestant.ts';

/** How a benchmark is run. */
export interface BenchOptions {
  /** Length of one turn of one contestant. */
  readonly seconds: number;
  /** Turns of each contestant; even, so that every one is as often early as late. */
  readonly rounds: number;
  /** Which suites; undefined: all. */
  readonly suites: readonly Suite[] | undefined;
  /** Whether starts are measured. */
  readonly starts: boolean;
  /** Ids of the contestants; undefined: all. */
  readonly only: readonly string[] | undefined;
  /** Entry of an earlier gateway, src/main.ts or a bundle; undefined: the peers. */
  readonly before: string | undefined;
  /** Where a CPU profile of each contestant is written; it costs a little CPU itself. */
  readonly profile: string | undefined;
}

export const USAGE = `node verification/bench/run.ts [options]

  --seconds N     length of a turn (default 1, at most 30)
  --rounds N      turns of each contestant (default 8, at most 50)
  --quick         half a second, 4 rounds: about two minutes for all
  --suite A,B     some of http, passthrough, mcp, a2a, start (default all, about six minutes)
  --only A,B      these contestants only; a ratio needs its peer
  --before FILE   each gateway beside an earlier one (its src/main.ts or its bundle), no peers
  --profile DIR   also write a V8 CPU profile of each contestant there
`;

const DEFAULTS = { seconds: 1, rounds: 8 };
const QUICK = { seconds: 0.5, rounds: 4 };
const MAX_SECONDS = 30;
const MAX_ROUNDS = 50;

/** Reads the command line. @throws Error with the mistake */
export function readOptions(args: readonly string[]): BenchOptions | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      suite: { type: 'string' },
      only: { type: 'string' },
      before: { type: 'string' },
      profile: { type: 'string' },
      quick: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return 'help';
  const preset = values.quick === true ? QUICK : DEFAULTS;
  const seconds = Number(values.seconds ?? preset.seconds);
  const rounds = Number(values.rounds ?? preset.rounds);
  if (!(seconds > 0 && seconds <= MAX_SECONDS)) throw new Error(`--seconds: more than 0, at most ${MAX_SECONDS}`);
  if (!(Number.isInteger(rounds) && rounds > 0 && rounds <= MAX_ROUNDS))
    throw new Error(`--rounds: a whole number from 1 to ${MAX_ROUNDS}`);
  const { before, profile } = values;
  const suites = values.suite?.split(',');
  const starts = suites === undefined ? values.only === undefined : suites.includes(START_SUITE);
  return { seconds, rounds, suites: suitesOf(suites), starts, only: values.only?.split(','), before, profile };
}

function suitesOf(names: readonly string[] | undefined): readonly Suite[] | undefined {
  return names?.flatMap((name) => {
    if (name === START_SUITE) return [];
    const suite = SUITES.find((known) => known === name);
    if (suite === undefined) throw new Error(`--suite: ${name} is none of ${[...SUITES, START_SUITE].join(', ')}`);
    return [suite];
  });
}
