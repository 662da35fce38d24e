/** The words of the benchmark: questions, contestants, suites. */

/** The POST request that the load generator repeats. */
export interface Question {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The only status that counts as an answer; any other one fails the run. */
  readonly expect: number;
  /**
   * Text that every right answer holds: errors of JSON-RPC have status 200 too. Without it the run
   * fails.
   */
  readonly holds: string;
  /** Each request brings a fresh proof, and its answer says that the payment is settled. */
  readonly pays?: true;
}

/** The environment of a contestant. */
export interface Surroundings {
  /** On 127.0.0.1, free a moment ago. */
  readonly port: number;
  /** A second one, for programs with two listeners. */
  readonly sparePort: number;
  readonly backendUrl: string;
  /** Approves every payment and moves nothing. */
  readonly facilitatorUrl: string;
  /** A directory of this contestant, gone afterwards. */
  readonly folder: string;
  /** The entry of the measured gateway. */
  gatewayEntry(): Promise<string>;
  /** The entry of the same gateway with a rail that settles nothing. */
  noopEntry(): Promise<string>;
  /** A Redis of this contestant alone, on the core of the load. */
  redisUrl(): Promise<string>;
}

/** How to start a contestant: its arguments, and the whole of its environment but PATH. */
export interface Program {
  /** Default: Node. */
  readonly command?: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Contestants of one suite take turns and are compared with each other only. */
export const SUITES = ['free', 'challenge', 'bodies', 'paid', 'passthrough', 'mcp', 'a2a'] as const;
export type Suite = (typeof SUITES)[number];

/** What is done before the suites of turns can be believed, and without the load generator. */
export const START_SUITE = 'start';

/** A measured program. It runs in a process of its own, on a core of its own when there are two. */
export interface Contestant {
  /** Short, for `--only` and the history. */
  readonly id: string;
  readonly suite: Suite;
  /** The exact program. */
  readonly title: string;
  readonly question: Question;
  /** Requests in flight at any time, each on a connection of its own. Default 32. */
  readonly connections?: number;
  /** GET here answers anything but 503 once the contestant is ready. */
  readonly readyPath: string;
  /** Contestants with the same name here are one process that is asked different questions. */
  readonly process?: string;
  /** Calls of the facilitator that each answer costs; checked after each turn. */
  readonly facilitatorCalls?: { readonly verify: number; readonly settle: number };
  /** Whether it is our gateway, which `--before` compares with an earlier one. */
  readonly own?: true;
  /** @throws NotAvailable when what it needs cannot be had */
  program(surroundings: Surroundings): Promise<Program>;
}

/** What a contestant needs cannot be had on this machine; its rows are printed as not available. */
export class NotAvailable extends Error {
  override name = 'NotAvailable';
}

/** The input of every call: 53 bytes of JSON, as an agent would send them. */
export const INPUT = { city: 'Berlin', day: '2026-11-20', currency: 'EUR' } as const;

/** A text in every answer of the backend, inside any envelope. */
export const FROM_BACKEND = 'market-shop';

/** The headers of every agent of the benchmark. */
export const AGENT_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json',
  'user-agent': 'bench/1',
} as const;

/** A plain call with INPUT. */
export function plainQuestion(path: string, expect: number, holds: string): Question {
  return { path, headers: AGENT_HEADERS, body: JSON.stringify(INPUT), expect, holds };
}

/**
 * Where peers of the HTTP suites answer. They ignore the path; it is as long as that of the
 * gateway.
 */
export const PEER_QUESTION: Question = plainQuestion('/api/resources/report/invoke', 200, FROM_BACKEND);
