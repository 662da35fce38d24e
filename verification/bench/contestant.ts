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
  /** Short, for `--only`. */
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
const INPUT = { city: 'Berlin', day: '2026-11-20', currency: 'EUR' } as const;

/** A text in every answer of the backend, inside any envelope. */
export const FROM_BACKEND = 'market-shop';

/** The headers of every agent of the benchmark. */
const AGENT_HEADERS = {
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

/** A resource of the gateway, and the same tool on a peer. */
interface Tool {
  readonly id: string;
  readonly name: string;
  readonly description: string;
}

/** The schema of INPUT. Closed, as the gateway closes it, so that all servers list the same. */
export const INPUT_SCHEMA = {
  type: 'object',
  properties: {
    city: { type: 'string', maxLength: 64 },
    day: { type: 'string', format: 'date' },
    currency: { type: 'string', maxLength: 3, pattern: '^[A-Z]{3}$' },
  },
  required: ['city', 'day', 'currency'],
  additionalProperties: false,
} as const;

/** The called tool. */
export const CALLED = 'report-1';

/** `count` tools with one schema: report-1, report-2, ... */
export function tools(count: number): readonly Tool[] {
  return Array.from({ length: count }, (_, at) => ({
    id: toolId(at + 1),
    name: `Report ${at + 1}`,
    description: `Prices and volumes of one city on one day, edition ${at + 1}`,
  }));
}

/** The name of the last of `count` tools: an answer with it is a complete list. */
function lastTool(count: number): string {
  return toolId(count);
}

function toolId(edition: number): string {
  return `report-${edition}`;
}

const BODY_BYTES = 64_000;

/** A paragraph of a document, about 500 bytes as JSON, with the escapes that texts have. */
const PARAGRAPH = `${'Prices of the day in Berlin and Hamburg, firm until noon and before fees of the market. '.repeat(5)}\n"EUR" only, lots of twelve.`;
const PARAGRAPH_BYTES = JSON.stringify(PARAGRAPH).length + 1;

/** The schema of `textQuestion`: the paragraphs of a document. */
export const TEXT_SCHEMA = {
  type: 'object',
  properties: { paragraphs: { type: 'array', maxItems: 1_000, items: { type: 'string', maxLength: 1_000 } } },
  required: ['paragraphs'],
  additionalProperties: false,
} as const;

/** A call whose body has about 64 KB. */
export function textQuestion(path: string): Question {
  const paragraphs = Array.from({ length: Math.floor(BODY_BYTES / PARAGRAPH_BYTES) }, () => PARAGRAPH);
  return { path, headers: AGENT_HEADERS, body: JSON.stringify({ paragraphs }), expect: 200, holds: FROM_BACKEND };
}

/** Where gateway and peers serve MCP. */
export const MCP_PATH = '/mcp';

const VERSION = '2026-07-28';
const META = {
  'io.modelcontextprotocol/protocolVersion': VERSION,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** `tools/list` of a server with `count` tools. */
export function listQuestion(count: number): Question {
  return rpc('tools/list', {}, `"name":"${lastTool(count)}"`);
}

/** `tools/call` of a free tool that calls the backend. */
export function callQuestion(): Question {
  return rpc('tools/call', { name: CALLED, arguments: INPUT }, FROM_BACKEND);
}

function rpc(method: string, params: { readonly name?: string; readonly arguments?: object }, holds: string): Question {
  return {
    path: MCP_PATH,
    headers: {
      ...AGENT_HEADERS,
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': VERSION,
      'mcp-method': method,
      ...(params.name === undefined ? {} : { 'mcp-name': params.name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } }),
    expect: 200,
    holds,
  };
}

/** Where gateway and peer serve A2A. */
export const A2A_PATH = '/a2a';

/** `SendMessage` of A2A 1.0 to a free skill that calls the backend. */
export const SEND_QUESTION: Question = {
  path: A2A_PATH,
  headers: { ...AGENT_HEADERS, 'a2a-version': '1.0' },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'SendMessage',
    params: {
      message: {
        messageId: '6f1c2a4e-3f0b-4a57-9a53-2b8f6f0f6f11',
        role: 'ROLE_USER',
        parts: [{ data: { resource: CALLED, input: INPUT }, mediaType: 'application/json' }],
      },
    },
  }),
  expect: 200,
  holds: FROM_BACKEND,
};
