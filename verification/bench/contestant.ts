/** What the load generator asks of a contestant with POST, again and again. */
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

/** What a contestant runs with. */
export interface Surroundings {
  /** On 127.0.0.1, free a moment ago. */
  readonly port: number;
  /** A second one, for programs with two listeners. */
  readonly sparePort: number;
  readonly backendUrl: string;
  /** Answers GET /supported and nothing else: no contestant may move money. */
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
export const SUITES = ['http', 'mcp', 'a2a'] as const;
export type Suite = (typeof SUITES)[number];

/**
 * One of those that are measured. It runs in a process of its own, on a core of its own when there
 * are two.
 */
export interface Contestant {
  /** Short, for `--only` and the history. */
  readonly id: string;
  readonly suite: Suite;
  readonly title: string;
  readonly question: Question;
  /** GET here is answered with anything but 503 once the contestant can be measured. */
  readonly readyPath: string;
  /** Whose CPU a request of the same round is the 1.00 of this one's ratio. */
  readonly against?: { readonly id: string /** The ratio to reach. */; readonly goal?: number };
  program(surroundings: Surroundings): Promise<Program>;
}

/** What every merchant's resource is called with: 53 bytes of JSON, as an agent would send them. */
export const INPUT = { city: 'Berlin', day: '2026-11-20', currency: 'EUR' } as const;

/** In every answer of the merchant, however it is wrapped. */
export const FROM_MERCHANT = 'market-shop';

/** What every agent of the benchmark sends along. */
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
 * Where peers of the HTTP suite answer. The path has no meaning for them, but it has the length of
 * the gateway's own.
 */
export const PEER_QUESTION: Question = plainQuestion('/api/resources/report/invoke', 200, FROM_MERCHANT);
