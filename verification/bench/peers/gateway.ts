/** The gateway as contestants: over HTTP, its 402, over MCP and over A2A. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Contestant, FROM_BACKEND, plainQuestion, type Question, type Surroundings } from '../contestant.ts';
import { callQuestion, listQuestion, SEND_QUESTION } from '../questions.ts';
import { INPUT_SCHEMA, tools } from '../tools.ts';

export const FREE_RESOURCE = 'report';
export const PAID_RESOURCE = 'quoted';

const ENTRY = join(import.meta.dirname, '../../../src/main.ts');
/** Base Sepolia and its USDC: public names only, no settlement happens here. */
const NETWORK = 'eip155:84532';
const ASSET = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
const PAYEE = `0x${'11'.repeat(20)}`;

/** The resources and channels of one contestant. */
export interface Sold {
  readonly protocols?: object;
  readonly passthrough?: object;
  readonly resources: Readonly<Record<string, object>>;
}

/** One free and one paid resource over HTTP. */
export const SOLD_OVER_HTTP: Sold = {
  resources: {
    [FREE_RESOURCE]: resource({ name: 'Report', description: 'Prices and volumes of one city on one day' }, ['http']),
    [PAID_RESOURCE]: {
      ...resource({ name: 'Report', description: 'Prices and volumes of one city on one day' }, ['http']),
      pricing: { type: 'fixed', amount: '0.01', currency: 'USDC' },
      payments: ['x402'],
    },
  },
};

/**
 * A free call through the whole pipeline to the backend and back; the log is on, events and
 * receipts are written.
 */
export const gatewayFree: Contestant = {
  id: 'free',
  suite: 'http',
  title: 'gateway, free invoke',
  question: plainQuestion(invocationOf(FREE_RESOURCE), 200, FROM_BACKEND),
  readyPath: '/ready',
  against: { id: 'hpm-recipe', goal: 0.5 },
  program: gatewayProgram('free', SOLD_OVER_HTTP),
};

/**
 * A call without a proof: validated, priced and answered 402; the log is on, events are written.
 */
export const gatewayChallenge: Contestant = {
  id: 'challenge',
  suite: 'http',
  title: 'gateway, 402 challenge',
  question: plainQuestion(invocationOf(PAID_RESOURCE), 402, '"code":"PAYMENT_REQUIRED"'),
  readyPath: '/ready',
  against: { id: 'express', goal: 1 },
  program: gatewayProgram('challenge', SOLD_OVER_HTTP),
};

/**
 * Lists from bytes made at start, calls through the whole pipeline; the log is on, events and
 * receipts are written.
 */
export const gatewayMcp: readonly Contestant[] = [
  mcpContestant('mcp-list-5', 'tools/list of 5', listQuestion(5, 'modern'), 5, { id: 'sdk-list-5', goal: 1 / 3 }),
  mcpContestant('mcp-list-55', 'tools/list of 55', listQuestion(55, 'modern'), 55, { id: 'sdk-list-55', goal: 1 / 3 }),
  mcpContestant('mcp-list-5-legacy', 'tools/list of 5, 2025', listQuestion(5, 'legacy'), 5, {
    id: 'sdk-list-5-legacy',
    goal: 1 / 3,
  }),
  mcpContestant('mcp-call', 'tools/call, free', callQuestion(), 5, { id: 'sdk-call' }),
];

function mcpContestant(
  id: string,
  what: string,
  question: Question,
  count: number,
  against: NonNullable<Contestant['against']>,
): Contestant {
  return {
    id,
    suite: 'mcp',
    title: `gateway, ${what}`,
    question,
    readyPath: '/ready',
    against,
    program: gatewayProgram(id, soldTools(count, 'mcp')),
  };
}

/**
 * A free SendMessage through the whole pipeline to the backend and back as a task; the log is on,
 * events and receipts are written.
 */
export const gatewayA2a: Contestant = {
  id: 'a2a-send',
  suite: 'a2a',
  title: 'gateway, SendMessage, free',
  question: SEND_QUESTION,
  readyPath: '/ready',
  against: { id: 'sdk-send', goal: 0.5 },
  program: gatewayProgram('a2a-send', soldTools(5, 'a2a')),
};

/** The path that invokes a resource over HTTP. */
export function invocationOf(resource: string): string {
  return `/api/resources/${resource}/invoke`;
}

/** `count` free tools on one more channel. */
function soldTools(count: number, channel: 'mcp' | 'a2a'): Sold {
  return {
    protocols: { [channel]: { enabled: true } },
    resources: Object.fromEntries(tools(count).map(({ id, ...named }) => [id, resource(named, ['http', channel])])),
  };
}

/**
 * The gateway as it is deployed, or the bundle that GATEWAY_ENTRY names. Each contestant gets a
 * configuration of its own.
 */
export function gatewayProgram(id: string, sold: Sold): Contestant['program'] {
  return async (surroundings) => {
    const config = join(surroundings.folder, `${id}.json`);
    await writeFile(config, JSON.stringify(settings(surroundings, sold)));
    return {
      args: [process.env['GATEWAY_ENTRY'] ?? ENTRY, 'serve', '--config', config],
      env: { NODE_ENV: 'production', GATEWAY_DRAIN_SECONDS: '0' },
    };
  };
}

function settings(
  { port, sparePort, backendUrl, facilitatorUrl }: Surroundings,
  { passthrough, ...sold }: Sold,
): object {
  const host = '127.0.0.1';
  return {
    version: 1,
    merchant: { id: 'bench', name: 'Bench', publicBaseUrl: `http://${host}:${port}` },
    server: { host, port },
    management: { host, port: sparePort },
    backend: { baseUrl: backendUrl, ...(passthrough === undefined ? {} : { passthrough }) },
    ...sold,
    storage: { sqlite: { path: ':memory:' } },
    payments: {
      x402: {
        network: NETWORK,
        asset: ASSET,
        assetName: 'USDC',
        assetVersion: '2',
        assetDecimals: 6,
        payTo: PAYEE,
        facilitator: { mode: 'remote', url: facilitatorUrl, auth: { type: 'none' } },
      },
    },
  };
}

function resource(named: { readonly name: string; readonly description: string }, expose: readonly string[]): object {
  return {
    ...named,
    inputSchema: INPUT_SCHEMA,
    backend: { method: 'POST', path: '/report' },
    pricing: { type: 'free' },
    expose,
    payments: [],
  };
}
