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
}

/** The environment of a contestant. */
export interface Surroundings {
  /** On 127.0.0.1, free a moment ago. */
  readonly port: number;
  /** A second one, for programs with two listeners. */
  readonly sparePort: number;
  readonly backendUrl: string;
  /** Answers GET /supported only: no contestant may move money. */
  readonly facilitatorUrl: string;
  /** A directory of this run, gone afterwards. */
  readonly folder: string;
}

/** How to start a contestant: arguments for Node, and the whole of its environment but PATH. */
export interface Program {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Contestants of one suite take turns and are compared with each other only. */
export const SUITES = ['http', 'passthrough', 'mcp', 'a2a'] as const;
export type Suite = (typeof SUITES)[number];

/** The suite of starts, which no load generator takes part in (`start.ts`). */
export const START_SUITE = 'start';

/** A measured program. It runs in a process of its own, on a core of its own when there are two. */
export interface Contestant {
  /** Short, for `--only` and the history. */
  readonly id: string;
  readonly suite: Suite;
  readonly title: string;
  readonly question: Question;
  /** GET here answers anything but 503 once the contestant is ready. */
  readonly readyPath: string;
  /** The peer whose CPU a request in the same round is the 1.00 of this ratio. */
  readonly against?: { readonly id: string /** The ratio to reach. */; readonly goal?: number };
  program(surroundings: Surroundings): Promise<Program>;
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
 * Where peers of the HTTP suite answer. They ignore the path; it is as long as that of the gateway.
 */
export const PEER_QUESTION: Question = plainQuestion('/api/resources/report/invoke', 200, FROM_BACKEND);
