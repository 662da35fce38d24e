/** The gateway as contestants: over HTTP, its 402, over MCP and over A2A. */

import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type Contestant,
  callQuestion,
  FROM_BACKEND,
  INPUT_SCHEMA,
  listQuestion,
  plainQuestion,
  type Question,
  SEND_QUESTION,
  type Surroundings,
  TEXT_SCHEMA,
  textQuestion,
  tools,
} from '../contestant.ts';
import { deployed } from '../deployed.ts';

export const FREE_RESOURCE = 'report';
export const PAID_RESOURCE = 'quoted';

const TEXT_RESOURCE = 'text';
/** Base Sepolia and its USDC: public names only, no money moves here. */
const NETWORK = 'eip155:84532';
export const ASSET = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
export const PAYEE = `0x${'11'.repeat(20)}`;

/** The resources and channels of one contestant. */
export interface Sold {
  /** Beside a name of its own for each gateway. */
  readonly merchant?: object;
  readonly protocols?: object;
  readonly passthrough?: object;
  readonly resources: Readonly<Record<string, object>>;
  readonly limits?: object;
  /** Beside the place of the records. */
  readonly storage?: object;
  readonly signing?: object;
}

const REPORT = resource({ name: 'Report', description: 'Prices and volumes of one city on one day' }, ['http']);

/** One free and one paid resource over HTTP. */
export const SOLD_OVER_HTTP: Sold = {
  resources: {
    [FREE_RESOURCE]: REPORT,
    [PAID_RESOURCE]: {
      ...REPORT,
      pricing: { type: 'fixed', amount: '0.01', currency: 'USDC' },
      payments: ['x402'],
    },
  },
};

/** The same with a key of receipts. */
const SOLD_SIGNED: Sold = {
  ...SOLD_OVER_HTTP,
  signing: {
    key: String(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' })),
  },
};

/** What a sale that is settled after its call needs, and the same sale that is settled before. */
const SEALED = { sealing: { keys: [{ id: 'bench', key: Buffer.alloc(32, 7).toString('base64') }] } };
const SOLD_SEALED: Sold = { ...SOLD_OVER_HTTP, storage: SEALED };
const SOLD_AFTER: Sold = {
  ...SOLD_SEALED,
  resources: {
    [PAID_RESOURCE]: {
      ...REPORT,
      backend: { method: 'POST', path: '/report', idempotent: true },
      pricing: { type: 'fixed', amount: '0.01', currency: 'USDC', settle: 'after' },
      payments: ['x402'],
    },
  },
  limits: { unpaidWork: { perResource: 1_000, perNetwork: 1_000, all: 1_000 } },
};

/** A free resource that takes a long text. */
const SOLD_TEXT: Sold = {
  resources: {
    [TEXT_RESOURCE]: {
      ...resource({ name: 'Text', description: 'Prices of the cities of a text' }, ['http']),
      inputSchema: TEXT_SCHEMA,
    },
  },
};

const OVER_HTTP = { readyPath: '/ready', own: true } as const;
const FREE_QUESTION = plainQuestion(invocationOf(FREE_RESOURCE), 200, FROM_BACKEND);
const PRICED_QUESTION = plainQuestion(invocationOf(PAID_RESOURCE), 402, '"code":"PAYMENT_REQUIRED"');
const PAID_QUESTION: Question = { ...plainQuestion(invocationOf(PAID_RESOURCE), 200, FROM_BACKEND), pays: true };

/**
 * A free call through the whole pipeline to the backend and back; the log is on, events and
 * receipts are written. On one connection the same process shows its times.
 */
const FREE = { ...OVER_HTTP, suite: 'free', question: FREE_QUESTION } as const;
const FREE_REDIS = gatewayProgram('redis', SOLD_OVER_HTTP);
export const gatewayFree: readonly Contestant[] = [
  { ...FREE, id: 'free-redis', title: 'gateway, free call, Redis', program: FREE_REDIS },
  {
    ...FREE,
    id: 'free-sqlite',
    title: 'gateway, free call, SQLite file',
    program: gatewayProgram('sqlite', SOLD_OVER_HTTP),
  },
  {
    ...FREE,
    id: 'free-alone',
    title: 'gateway, free call, Redis, one connection',
    connections: 1,
    process: 'free-redis',
    program: FREE_REDIS,
  },
];

/**
 * A call without a proof: validated, priced and answered 402; the log is on, events are written.
 */
export const gatewayChallenge: Contestant = {
  ...OVER_HTTP,
  id: 'challenge',
  suite: 'challenge',
  title: 'gateway, 402, Redis',
  question: PRICED_QUESTION,
  program: gatewayProgram('redis', SOLD_OVER_HTTP),
};

/** A free call with a long body. */
export const gatewayBody: Contestant = {
  ...OVER_HTTP,
  id: 'body-64k',
  suite: 'bodies',
  title: 'gateway, free call with 64 KB, Redis',
  question: textQuestion(invocationOf(TEXT_RESOURCE)),
  program: gatewayProgram('redis', SOLD_TEXT),
};

/**
 * Paid calls: the proof is checked here and by a facilitator which then settles, or settled by a
 * rail that does nothing.
 */
export const paidCall = {
  ...OVER_HTTP,
  suite: 'paid',
  title: 'gateway, paid call, Redis, HTTP facilitator',
  question: PAID_QUESTION,
  facilitatorCalls: { verify: 1, settle: 1 },
} as const;
export const gatewayPaid: readonly Contestant[] = [
  { ...paidCall, id: 'paid-http', program: gatewayProgram('redis', SOLD_OVER_HTTP) },
  {
    ...paidCall,
    id: 'paid-signed',
    title: `${paidCall.title}, with a signed receipt`,
    program: gatewayProgram('redis', SOLD_SIGNED),
  },
  {
    ...paidCall,
    id: 'paid-stated',
    title: `${paidCall.title}, with a signed receipt and statement`,
    question: { ...PAID_QUESTION, headers: { ...PAID_QUESTION.headers, te: 'trailers' } },
    process: 'paid-signed',
    program: gatewayProgram('redis', SOLD_SIGNED),
  },
  {
    ...paidCall,
    id: 'paid-sealed',
    title: `${paidCall.title}, sealed store`,
    program: gatewayProgram('redis', SOLD_SEALED),
  },
  {
    ...paidCall,
    id: 'paid-after',
    title: `${paidCall.title}, sealed store, settled after the call`,
    program: gatewayProgram('redis', SOLD_AFTER),
  },
  {
    ...paidCall,
    id: 'paid-noop',
    title: 'gateway, paid call, Redis, proof checked here, settled by nothing',
    facilitatorCalls: { verify: 0, settle: 0 },
    program: gatewayProgram('redis', SOLD_OVER_HTTP, (surroundings) => surroundings.noopEntry()),
  },
];

/**
 * Lists from bytes made at start, calls through the whole pipeline; the log is on, events and
 * receipts are written.
 */
export const gatewayMcp: readonly Contestant[] = [
  mcpContestant('mcp-list-5', 'tools/list of 5', listQuestion(5), 5),
  mcpContestant('mcp-list-55', 'tools/list of 55', listQuestion(55), 55),
  mcpContestant('mcp-call-5', 'tools/call, free, of 5', callQuestion(), 5),
  mcpContestant('mcp-call-55', 'tools/call, free, of 55', callQuestion(), 55),
];

function mcpContestant(id: string, what: string, question: Question, count: number): Contestant {
  return {
    ...OVER_HTTP,
    id,
    suite: 'mcp',
    title: `gateway, ${what}, Redis`,
    question,
    process: `gateway-mcp-${count}`,
    program: gatewayProgram('redis', soldTools(count, 'mcp')),
  };
}

/**
 * A free SendMessage through the whole pipeline to the backend and back as a task; the log is on,
 * events and receipts are written.
 */
export const gatewayA2a: Contestant = {
  ...OVER_HTTP,
  id: 'a2a-send',
  suite: 'a2a',
  title: 'gateway, SendMessage, free, Redis',
  question: SEND_QUESTION,
  program: gatewayProgram('redis', soldTools(5, 'a2a')),
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

/** The gateway that more connections ask than it can serve. */
export const gatewayOverloaded: Contestant = {
  ...FREE,
  id: 'gateway',
  title: 'gateway, free call, Redis',
  program: FREE_REDIS,
};

/** Where a gateway keeps its records. */
type StoreKind = 'redis' | 'sqlite' | 'memory';

/**
 * The gateway as it is deployed, with a configuration and a store of its own.
 * @param entryOf another gateway than the measured one
 */
export function gatewayProgram(
  store: StoreKind,
  sold: Sold,
  entryOf: (surroundings: Surroundings) => Promise<string> = (surroundings) => surroundings.gatewayEntry(),
): Contestant['program'] {
  return async (surroundings) => {
    const config = join(surroundings.folder, 'gateway.json');
    const storage = { ...sold.storage, ...(await storageOf(store, surroundings)) };
    await writeFile(config, JSON.stringify({ ...settings(surroundings, sold), storage }));
    const { flags, env } = deployed();
    return {
      args: [...flags, await entryOf(surroundings), 'serve', '--config', config],
      env: { ...env, GATEWAY_DRAIN_SECONDS: '0' },
    };
  };
}

async function storageOf(store: StoreKind, { folder, redisUrl }: Surroundings): Promise<object> {
  if (store === 'redis') return { redis: { url: await redisUrl() } };
  return { sqlite: { path: store === 'memory' ? ':memory:' : join(folder, 'store.db') } };
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
