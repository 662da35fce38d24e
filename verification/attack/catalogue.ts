/** The rows of the attack catalogue, and how specs name themselves after them. */

import { it, type TestContext } from 'node:test';

/** Where a figure stands in the diagnostics of a test, before its JSON. */
const FIGURE_MARK = 'figure ';
/** Between the rows of a test and its name. */
const NAME_MARK = ': ';
const NAME = /^((?:[HBPXAODI]\d+ ?)+): (.*)$/s;

/**
 * Set by `node verification/attack/main.ts`: `quick` or `long`. Otherwise this is a test run, which
 * does the same as the quick one.
 */
const RUN = process.env['ATTACK_RUN'];
export const isLongRun = RUN === 'long';

/** How often something is repeated: `quick` in a test run, `long` in the long run. */
export function times(quick: number, long: number): number {
  return isLongRun ? long : quick;
}

/**
 * One attack as a test. `rows` are written out in the call itself, so that what covers a row can be
 * read from the source: `attack('H2', 'a nominated proof is still read', async (t) => …)`.
 * `timeout` in milliseconds.
 */
export function attack(
  rows: RowId | readonly RowId[],
  name: string,
  body: (context: TestContext) => void | Promise<void>,
  options: { readonly timeout?: number } = {},
): void {
  it(`${[rows].flat().join(' ')}${NAME_MARK}${name}`, options, (context) => body(context));
}

/** Reports a figure for the table of goals, which only `main.ts` prints. */
export function measured(context: TestContext, figure: Figure, value: number): void {
  if (RUN !== undefined) context.diagnostic(`${FIGURE_MARK}${JSON.stringify({ figure, value })}`);
}

/** Reads a diagnostic of a test back; undefined when it holds no figure. */
export function readFigure(message: string): { readonly figure: Figure; readonly value: number } | undefined {
  if (!message.startsWith(FIGURE_MARK)) return undefined;
  return JSON.parse(message.slice(FIGURE_MARK.length)) as { readonly figure: Figure; readonly value: number };
}

/** Reads the name of a test back; undefined when it is no attack. */
export function attackName(title: string): { readonly rows: readonly string[]; readonly name: string } | undefined {
  const [, rows, name] = NAME.exec(title) ?? [];
  return rows === undefined || name === undefined ? undefined : { rows: rows.split(' '), name };
}

/** The known attacks, by the id that their tests begin with. */
export const ROWS = {
  H1: 'request smuggling',
  H2: 'hop-by-hop abuse',
  H3: 'duplicate security headers',
  H4: 'X-Request-Id injection',
  H5: 'huge or many headers',
  H6: 'response splitting and header injection from the backend',
  H7: 'cache leakage of paid answers',
  H8: 'Host header routing and DNS rebinding',
  B1: 'bodies over 256 KiB, declared or chunked',
  B2: 'compression bombs',
  B3: 'wrong content type',
  B4: 'invalid UTF-8, byte order marks, lone surrogates',
  B5: 'parser errors that quote the input',
  B6: 'duplicate keys, parser differential',
  B7: 'depth',
  B8: 'prototype pollution',
  B9: 'number precision',
  B10: 're-serialised bodies',
  B11: 'ReDoS in schemas and formats',
  B12: 'schema bombs',
  P1: 'path parameter escapes',
  P2: 'redirects of the backend',
  P3: 'routing by Host',
  P4: 'backends outside the pod',
  P5: 'a backend that is reachable past the gateway',
  P6: 'slow or endless answers of the backend',
  P7: 'WebSocket and h2c tunnels',
  P8: 'header values of the caller that reach the backend',
  X1: 'malformed base64',
  X2: 'the same authorization in other clothes',
  X3: 'a hundred copies at once, over two pods',
  X4: 'other amount, asset, network, recipient, scheme, version',
  X5: 'a proof for another resource of the same price',
  X6: 'expired, early and far-future windows',
  X7: 'price change between challenge and payment',
  X8: 'ERC-6492 factories of the payer',
  X9: 'ERC-1271 wallets that change their mind',
  X10: 'a facilitator that lies',
  X11: 'malicious answers of a facilitator',
  X12: 'a facilitator that is away',
  X13: 'preemption of the settlement',
  X14: 'cancelled or self-spent authorizations',
  X15: 'grant before final',
  X16: 'one proof, many grants',
  X17: 'replay from public calldata',
  X18: 'flooding of the settlement',
  X19: 'exhaustion by signature checks',
  X20: 'amounts that are no exact numbers',
  X21: 'work that is never paid for, where the money moves after it',
  A1: 'forged and replayed mandates',
  A2: 'one mandate for two payments',
  A3: 'A2A messages out of the schema',
  A4: 'proofs inside the input that leak',
  A5: 'MCP names, sessions, batches, resumption',
  A6: 'ACP keys, locks and payment tokens',
  A7: 'ACP backends that leak',
  A8: 'poisoned descriptions',
  O1: 'timing and length of the operator token',
  O2: 'operator routes that show without a token',
  O3: 'tokens in query, cookie, or twice',
  O4: 'guessing the token',
  O5: 'origins that almost match',
  O6: 'event streams: too many, too slow, bad ids',
  O7: 'secrets in logs and every other sink',
  O8: 'secrets in the configuration',
  O9: 'error bodies that leak',
  O10: 'injection into the store',
  O11: 'an exposed management listener',
  D1: 'slow clients',
  D2: 'floods',
  D3: 'the limiter itself',
  D4: 'forged X-Forwarded-For',
  D5: 'unpaid challenges that grow the store',
  D6: 'stored answers that fill the store',
  D7: 'calls cut by a drain',
  D8: 'floods of log lines',
  I1: 'arXiv 2605.11781, Five Attacks on x402',
  I2: 'arXiv 2605.30998, Free-Riding the Agentic Web',
  I3: 'PYUSD: no revert on reuse',
  I4: 'x402-foundation/x402 PR 2480',
  I5: 'gosuda/x402-facilitator 42, wienerlabs/covenant 270',
  I6: 'michielpost/x402-dotnet 18, a2a-x402 PR 107, PR 2842',
  I7: 'GetBindu/Bindu PR 520',
  I8: '402Bridge, October 2025',
  I9: 'CVE-2026-25536, shared MCP transports',
  I10: 'GHSA-w48q-cv73-mx4w, CVE-2026-34742',
  I11: 'CVE-2026-39313, unbounded MCP body',
  I12: 'CVE-2026-55602, -55603, CVE-2025-32996, -32997',
  I13: 'CVE-2025-49844, scripts of Redis',
  I14: 'x402-redteam corpus',
} as const;

/** `H1` to `D8`, and `I1` to `I14` for the published attacks and incidents. */
type RowId = keyof typeof ROWS;

/** Published attacks and incidents, each with the rows that it consists of. */
export const INCIDENTS: Readonly<Record<Extract<RowId, `I${string}`>, readonly RowId[]>> = {
  I1: ['X15', 'X13', 'X2', 'X16', 'H3', 'H7', 'A8'],
  I2: ['X5', 'X3', 'X18'],
  I3: ['X14'],
  I4: ['X8'],
  I5: ['X4', 'X10'],
  I6: ['X5'],
  I7: ['X2'],
  I8: [],
  I9: ['A5'],
  I10: ['H8'],
  I11: ['B1'],
  I12: ['P3', 'B10'],
  I13: ['O10'],
  I14: [],
};

/** How the figures of several tests are combined. */
type Combination = 'sum' | 'greatest';

/** The bounds of a figure; `quick`: the lower bound in the short run. */
export interface Bound {
  readonly combined: Combination;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly quick?: number;
  /** Only the long run measures it. */
  readonly longOnly?: true;
}

/** All measured figures, by the name under which a test reports them. */
export const FIGURES = {
  'framing cases': { combined: 'sum', atLeast: 60 },
  'framing cases behind a proxy': { combined: 'sum', atLeast: 60, longOnly: true },
  'differing views of the backend': { combined: 'sum', atMost: 0 },
  'mutated requests': { combined: 'sum', atLeast: 20_000, quick: 2_000 },
  'answers outside the forms': { combined: 'sum', atMost: 0 },
  crashes: { combined: 'sum', atMost: 0 },
  'property cases': { combined: 'sum', atLeast: 100_000, quick: 10_000 },
  'hostile facilitator answers': { combined: 'sum', atLeast: 40 },
  'hostile backend answers': { combined: 'sum', atLeast: 40 },
  'unpaid deliveries': { combined: 'sum', atMost: 0 },
  'double settlements': { combined: 'sum', atMost: 0 },
  'spellings of one proof': { combined: 'greatest', atLeast: 20 },
  'copies of each spelling': { combined: 'greatest', atLeast: 100, quick: 5 },
  'settlements of one proof': { combined: 'greatest', atLeast: 1, atMost: 1 },
  'longest block of the event loop, ms': { combined: 'greatest', atMost: 50 },
} as const satisfies Readonly<Record<string, Bound>>;

export type Figure = keyof typeof FIGURES;

/**
 * A line of the table of goals: met when its figures are within their bounds and its rows have
 * passed.
 */
interface Goal {
  readonly goal: string;
  readonly figures: readonly Figure[];
  readonly rows: readonly string[];
}

/** The goals of the catalogue, in its order. */
export const GOALS: readonly Goal[] = [
  {
    goal: 'raw-socket corpus',
    figures: ['framing cases', 'framing cases behind a proxy', 'differing views of the backend'],
    rows: ['H1', 'H2'],
  },
  { goal: 'mutated raw requests', figures: ['mutated requests', 'crashes', 'answers outside the forms'], rows: [] },
  { goal: 'property cases', figures: ['property cases'], rows: [] },
  {
    goal: 'hostile facilitators and backends',
    figures: ['hostile facilitator answers', 'hostile backend answers', 'unpaid deliveries', 'double settlements'],
    rows: ['X10', 'X11'],
  },
  {
    goal: 'proof spellings, at once',
    figures: ['spellings of one proof', 'copies of each spelling', 'settlements of one proof'],
    rows: ['X2'],
  },
  { goal: 'canary leak test', figures: [], rows: ['O7'] },
  { goal: 'ReDoS, bombs, depth', figures: ['longest block of the event loop, ms'], rows: ['B7', 'B11', 'B12'] },
  { goal: 'slow clients and floods', figures: [], rows: ['D1', 'D2'] },
  { goal: 'work without pay', figures: [], rows: ['X21'] },
  { goal: 'published attacks and incidents', figures: [], rows: ['I*'] },
];
