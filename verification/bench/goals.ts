/** The goals: what is measured of whom, beside whom, and what it must be. */

import { START_SUITE, type Suite } from './contestant.ts';
import { RECIPE } from './peers/hpm-recipe.ts';

/**
 * What a row compares. Of turns: `cpu` is CPU a request, `p50` the median time of an answer, each
 * as a ratio to the peer of the same round; `tail` is p99 through p50 of the contestant itself.
 * `measured` is given by a suite that takes no turns.
 */
export type Figure = 'cpu' | 'p50' | 'tail' | 'measured';

/** One row of the report. */
export interface Goal {
  readonly id: string;
  readonly suite: RowSuite;
  readonly what: string;
  /** The contestant; of a measured row the id of its value. */
  readonly of: string;
  /** The peer in the same rounds. */
  readonly against?: string;
  /** The exact peer of a measured row. */
  readonly peer?: string;
  readonly figure: Figure;
  /** Without it the row only tells. */
  readonly goal?: number;
  readonly stretch?: number;
  /** More is better. */
  readonly atLeast?: true;
  /** Part of `make bench-quick`. */
  readonly quick?: true;
}

/** Suites with rows: those of turns, and those that measure in other ways. */
export const MEASURED_SUITES = ['overload', START_SUITE] as const;
export type RowSuite = Suite | (typeof MEASURED_SUITES)[number];

function cpu(id: string, suite: Suite, what: string, of: string, against: string, rest: Partial<Goal> = {}): Goal {
  return { id, suite, what, of, against, figure: 'cpu', ...rest };
}

const FREE: readonly Goal[] = [
  cpu('free-redis', 'free', 'free call, Redis', 'free-redis', 'recipe', { goal: 0.65, stretch: 0.55, quick: true }),
  cpu('free-sqlite', 'free', 'free call, SQLite file', 'free-sqlite', 'recipe', { goal: 0.75, stretch: 0.6 }),
  cpu('free-nginx', 'free', 'free call, Redis', 'free-redis', 'nginx', { goal: 4.5, stretch: 3.5 }),
  cpu('free-devlab', 'free', 'free call, SQLite file', 'free-sqlite', 'devlab', { goal: 0.08, stretch: 0.06 }),
  {
    id: 'p50-alone',
    suite: 'free',
    what: 'p50 at one connection, free call',
    of: 'free-alone',
    against: 'recipe-alone',
    figure: 'p50',
    goal: 0.85,
    stretch: 0.7,
  },
  {
    id: 'tail',
    suite: 'free',
    what: 'p99/p50 at 32 connections, free call',
    of: 'free-redis',
    figure: 'tail',
    goal: 6,
    stretch: 4,
  },
];

const BODIES: readonly Goal[] = [
  cpu('body-64k', 'bodies', 'free call, body 64 KB', 'body-64k', 'recipe-body-64k', { goal: 1, stretch: 0.7 }),
];

const PAID: readonly Goal[] = [
  cpu('challenge', 'challenge', '402', 'challenge', 'official-challenge', { goal: 0.45, stretch: 0.39, quick: true }),
  cpu('paid-noop', 'paid', 'paid, settled by nothing', 'paid-noop', 'official-noop', { goal: 1.5, stretch: 1 }),
  cpu('paid-http', 'paid', 'paid, HTTP facilitator, same two calls', 'paid-http', 'official-http', {
    goal: 0.45,
    stretch: 0.3,
    quick: true,
  }),
  cpu('paid-signed', 'paid', 'paid, with a signed receipt', 'paid-signed', 'paid-http', { goal: 1.15 }),
  cpu('paid-stated', 'paid', 'paid, with a signed receipt and statement', 'paid-stated', 'paid-http', { goal: 1.15 }),
  cpu('paid-after', 'paid', 'paid, settled after the call', 'paid-after', 'paid-sealed', { goal: 1.2 }),
  cpu('paid-local', 'paid', 'paid, local verification', 'paid-noop', 'official-viem', { goal: 0.16, stretch: 0.1 }),
];

const PROTOCOLS: readonly Goal[] = [
  cpu('passthrough', 'passthrough', 'request that passes', 'passed', 'hpm-logged', { goal: 1.15 }),
  cpu('mcp-call-5', 'mcp', 'MCP call, free, 5 tools', 'mcp-call-5', 'sdk-call-5', {
    goal: 0.33,
    stretch: 0.2,
    quick: true,
  }),
  cpu('mcp-call-55', 'mcp', 'MCP call, free, 55 tools', 'mcp-call-55', 'sdk-call-55', { goal: 0.2, stretch: 0.1 }),
  cpu('mcp-list-5', 'mcp', 'tools/list, 5 tools', 'mcp-list-5', 'sdk-list-5', { goal: 0.1 }),
  cpu('mcp-list-55', 'mcp', 'tools/list, 55 tools', 'mcp-list-55', 'sdk-list-55', { goal: 0.05 }),
  cpu('a2a-send', 'a2a', 'A2A SendMessage, free', 'a2a-send', 'sdk-send-lean', { goal: 0.5, stretch: 0.35 }),
];

function measured(id: string, suite: RowSuite, what: string, rest: Partial<Goal> = {}): Goal {
  return { id, suite, what, of: id, figure: 'measured', ...rest };
}

const CROWDS: readonly Goal[] = [
  ...[
    ['goodput-8x', '256'],
    ['goodput-30x', '1,000'],
  ].map(([id = '', count]) =>
    measured(id, 'overload', `${count} connections that retry at once: share of own peak`, {
      peer: `the same share of ${RECIPE}`,
      goal: 0.95,
      stretch: 1.1,
      atLeast: true,
    }),
  ),
];

const STARTS: readonly Goal[] = [
  measured('start', START_SUITE, 'start until the port takes connections', {
    peer: 'Express + http-proxy-middleware',
    goal: 1.6,
  }),
  measured('idle-rss', START_SUITE, 'idle RSS, MB', { goal: 90 }),
];

/** All rows, in the order of the report. */
export const GOALS: readonly Goal[] = [...FREE, ...BODIES, ...PAID, ...PROTOCOLS, ...CROWDS, ...STARTS];
