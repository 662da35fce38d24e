import type { GatewayConfig } from '../../../src/config/document/config.ts';
import { parseConfig } from '../../../src/config/load.ts';
import { ConfigError, type ConfigProblem } from '../../../src/problems/problem.ts';

type Value = unknown;
export type Changes = Readonly<Record<string, Value>>;

/** A payee whose key is unknown. */
export const PAYEE = '0x1111111111111111111111111111111111111111';

/** The smallest paid configuration; tests change single members of it. */
export function baseDocument(): Record<string, Value> {
  return {
    version: 1,
    merchant: { id: 'shop', name: 'Shop', publicBaseUrl: 'https://api.shop.example' },
    backend: { baseUrl: 'http://127.0.0.1:3000' },
    storage: { sqlite: { path: ':memory:' } },
    payments: {
      x402: {
        network: 'eip155:84532',
        asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
        assetName: 'USDC',
        assetVersion: '2',
        assetDecimals: 6,
        payTo: PAYEE,
        facilitator: { mode: 'remote', url: 'https://facilitator.example' },
      },
    },
    resources: {
      report: {
        name: 'Report',
        inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        backend: { method: 'GET', path: '/reports/{city}' },
        pricing: { type: 'fixed', amount: '0.01', currency: 'USDC' },
      },
    },
  };
}

/** Beside the entry of the base document: a dollar on another network, in its short form. */
export const AMOY = {
  ...{ network: 'polygon-amoy', payTo: PAYEE },
  facilitator: { mode: 'remote', url: 'https://amoy.example' },
};

/** `payments.x402` of the base document. */
export const SEPOLIA = (baseDocument()['payments'] as { readonly x402: Changes }).x402;

/** A euro on the network of that. */
export const EURO = {
  ...{ ...SEPOLIA, asset: `0x${'2'.repeat(40)}` },
  ...{ assetName: 'Euro Coin', currency: 'EURC', assetDecimals: 2 },
};

/** Base on mainnet, complete: each rule of real money is one change away. */
export const MAINNET: Changes = {
  'payments.x402.network': 'eip155:8453',
  'payments.x402.asset': '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  'payments.x402.assetName': 'USD Coin',
  'payments.x402.currency': 'USDC',
  'payments.x402.allowMainnet': true,
  'payments.x402.rpcUrl': 'https://rpc.example/v1/key',
  storage: { redis: { url: 'redis://10.0.0.5:6379' } },
};

/** A resource that is settled after the call, and complete. */
export const SETTLED_AFTER: Changes = {
  'resources.report.pricing.settle': 'after',
  'storage.sealing': { keys: [{ id: 'k1', key: Buffer.alloc(32, 1).toString('base64') }] },
};

const QUALITY = { type: 'string', enum: ['low', 'high'] };

/** A resource whose price may follow its input: one required property of each kind, and others. */
export const BY_INPUT: Changes = {
  'resources.report.backend': { method: 'POST', path: '/reports' },
  'resources.report.inputSchema': {
    type: 'object',
    properties: {
      ...{ n: { type: 'number' }, text: { type: 'string' }, list: { type: 'array' }, flag: { type: 'boolean' } },
      ...{ quality: QUALITY, any: {}, mixed: { type: ['number', 'string'] }, optional: { type: 'number' } },
      inner: {
        type: 'object',
        properties: { n: { type: 'integer' }, optional: { type: 'number' } },
        required: ['n'],
      },
      maybe: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
    },
    required: ['n', 'text', 'list', 'flag', 'quality', 'any', 'mixed', 'inner'],
  },
};

/** Sets members by dotted path; `undefined` removes one. */
export function changed(changes: Changes): Record<string, Value> {
  const document = baseDocument();
  for (const [path, value] of Object.entries(changes)) {
    const steps = path.split('.');
    const last = steps.pop() ?? '';
    let section = document;
    for (const step of steps) {
      section[step] ??= {};
      section = section[step] as Record<string, Value>;
    }
    if (value === undefined) delete section[last];
    else section[last] = structuredClone(value);
  }
  return document;
}

export function load(changes: Changes, env: Readonly<Record<string, string>> = {}): GatewayConfig {
  return parseConfig(JSON.stringify(changed(changes)), env);
}

/** Every problem of a text, with its place. */
export function placedProblems(text: string, env: Readonly<Record<string, string>> = {}): readonly ConfigProblem[] {
  try {
    parseConfig(text, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

/** The same without the places. */
export function problemsOfText(text: string, env: Readonly<Record<string, string>> = {}): readonly ConfigProblem[] {
  return placedProblems(text, env).map(({ path, message }) => ({ path, message }));
}

export function problems(changes: Changes, env: Readonly<Record<string, string>> = {}): readonly ConfigProblem[] {
  return problemsOfText(JSON.stringify(changed(changes)), env);
}
