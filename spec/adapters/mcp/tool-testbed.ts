/** Two gateways over one Redis that sell tools over MCP, with backend, chain and buyer. */

import { getAddress } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { KNOWN_NETWORKS } from '../../../src/payments/pricing/networks.ts';
import { type Chain, type ChainAccess, startChain } from '../../../tools/local-world/chain.ts';
import { type Buyer, createBuyer } from '../../support/buyer.ts';
import { type ConfigObject, CURRENCY } from '../../support/config.ts';
import { openGateway, type TestGatewayParts } from '../../support/gateway.ts';
import { answerBytes, answerJson } from '../../support/http-server.ts';
import { poseAs } from '../../support/public-chain.ts';
import { startRedis } from '../../support/redis.ts';
import { sampleResources } from '../../support/resources.ts';
import { type Route, route, type SampleBackend, startSampleBackend } from '../../support/sample-backend.ts';

/** The text that the conformance suite expects of `test_simple_text`. */
export const SIMPLE_TEXT = 'This is a simple text response for testing.';
/** What `/misfit` answers: no schema that wants a number of degrees fits it. */
export const MISFIT = { city: 'Oslo', celsius: 'mild' } as const;
/** What `/cities` answers. */
export const CITIES: readonly string[] = ['Berlin', 'Lisboa', 'São Paulo'];

/** A picture, a sound and a document, as short as their formats allow to be recognised. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const WAV = Buffer.from('UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=', 'base64');
const PDF = Buffer.from('%PDF-1.7\n%%EOF\n');

const ROUTES: readonly Route[] = [
  route('GET', '/text', (_, response) => answerJson(response, 200, SIMPLE_TEXT)),
  route('GET', '/failing', (_, response) => answerJson(response, 500, { error: 'the merchant says no' })),
  route('GET', '/cities', (_, response) => answerJson(response, 200, CITIES)),
  route('GET', '/misfit', (_, response) => answerJson(response, 200, MISFIT)),
  route('GET', '/picture', (_, response) => answerBytes(response, 200, 'image/png', PNG)),
  route('GET', '/sound', (_, response) => answerBytes(response, 200, 'audio/wav', WAV)),
  route('GET', '/document', (_, response) => answerBytes(response, 200, 'application/pdf', PDF)),
  route('GET', '/weather/[^/]+', ({ url }, response) =>
    answerJson(response, 200, { city: decodeURIComponent(url.split(/[/?]/)[2] ?? ''), celsius: 21 }),
  ),
  route('POST', '/echo', ({ body }, response) => answerBytes(response, 200, 'application/json', body)),
];

/** Starts the backend on a free port of 127.0.0.1. */
export function startToolBackend(): Promise<SampleBackend> {
  return startSampleBackend({ routes: ROUTES });
}

/** Base units that each paid tool costs: 0.01 of a token with six decimals. */
export const PRICE_UNITS = 10_000n;

/** The same in the configuration of a resource. */
export const PRICE_AMOUNT = '0.01';

interface Tool {
  readonly name: string;
  readonly path: string;
  readonly method?: 'GET' | 'POST';
  readonly paid?: boolean;
  readonly inputSchema?: ConfigObject;
  readonly outputSchema?: ConfigObject;
  readonly expose?: readonly string[];
}

const WEATHER = {
  type: 'object',
  properties: { city: { type: 'string' }, celsius: { type: 'number' } },
  required: ['city', 'celsius'],
} as const;

/**
 * The input schema that the scenario `json-schema-2020-12` of the conformance suite expects
 * unchanged.
 */
const FULL_SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
} as const;

/**
 * `test_*` and `json_schema_2020_12_tool` have the names under which the conformance suite looks
 * for them.
 */
const TOOLS: Readonly<Record<string, Tool>> = {
  test_simple_text: { name: 'A simple text', path: '/text' },
  test_error_handling: { name: 'An error', path: '/failing' },
  test_image_content: { name: 'A picture', path: '/picture' },
  test_audio_content: { name: 'A sound', path: '/sound' },
  test_embedded_resource: { name: 'A document', path: '/document' },
  json_schema_2020_12_tool: { name: 'A rich schema', method: 'POST', path: '/echo', inputSchema: FULL_SCHEMA },
  /** Three arguments that clients of 2026-07-28 repeat in headers, and one that they do not. */
  regional_query: {
    name: 'A query in a region',
    method: 'POST',
    path: '/echo',
    inputSchema: {
      type: 'object',
      properties: {
        region: { type: 'string', 'x-mcp-header': 'Region' },
        priority: { type: 'integer', 'x-mcp-header': 'Priority' },
        verbose: { type: 'boolean', 'x-mcp-header': 'Verbose' },
        query: { type: 'string' },
      },
      required: ['region'],
      additionalProperties: false,
    },
  },
  /** An output schema whose root is no object: legacy clients would refuse the whole list. */
  city_list: { name: 'Cities', path: '/cities', outputSchema: { type: 'array', items: { type: 'string' } } },
  weather: {
    name: 'Weather',
    path: '/weather/{city}',
    paid: true,
    inputSchema: {
      type: 'object',
      properties: { city: { type: 'string', minLength: 1 } },
      required: ['city'],
      additionalProperties: false,
    },
    outputSchema: WEATHER,
  },
  /** Paid, and the merchant's answer does not fit what was promised. */
  misfit: { name: 'Misfit', path: '/misfit', paid: true, outputSchema: WEATHER },
  http_only: { name: 'Not for agents of MCP', path: '/text', expose: ['http'] },
};

/** Names in the order of the configuration, which is the order of `tools/list`. */
export const TOOL_NAMES: readonly string[] = Object.keys(TOOLS).filter((name) => name !== 'http_only');

/** Overrides of a gateway that serves the tools above over MCP, and nothing of the sample. */
export function toolGatewayConfig(backendUrl: string, currency: string = CURRENCY): ConfigObject {
  const sample = Object.keys(sampleResources(currency)).map((id) => [id, undefined]);
  const tools = Object.entries(TOOLS).map(([id, tool]) => [id, resource(tool, currency)]);
  return {
    backend: { baseUrl: backendUrl },
    protocols: { mcp: { enabled: true } },
    resources: Object.fromEntries([...sample, ...tools]),
  };
}

function resource({ name, path, method = 'GET', paid = false, ...rest }: Tool, currency: string): ConfigObject {
  const {
    inputSchema = { type: 'object', properties: {}, additionalProperties: false },
    outputSchema,
    expose = ['http', 'mcp'],
  } = rest;
  return {
    name,
    description: `${name} of the merchant`,
    inputSchema,
    ...(outputSchema === undefined ? {} : { outputSchema }),
    backend: { method, path },
    pricing: paid ? { type: 'fixed', amount: PRICE_AMOUNT, currency } : { type: 'free' },
    expose,
    payments: paid ? ['x402'] : [],
  };
}

/** The network that the local chain claims to be. */
export const NETWORK = 'eip155:84532';
const BASE_SEPOLIA_ID = 84_532;
/**
 * Gives a local chain the id and the USDC of Base Sepolia: wallets with their published limits pay
 * with no other token, and these limits cannot be lifted in every client. Resolves to the chain
 * seen through that token.
 */
async function poseAsBaseSepolia(chain: Chain): Promise<ChainAccess> {
  const { address, name, version } = usdc();
  return poseAs(chain, { chainId: BASE_SEPOLIA_ID, asset: getAddress(address), name, version });
}

/** Overrides of a gateway on that chain, as an operator writes them for Base Sepolia. */
function baseSepolia(): ConfigObject {
  const { address, name, version } = usdc();
  return {
    payments: { x402: { network: NETWORK, asset: address, assetName: name, assetVersion: version, currency: 'USDC' } },
  };
}

function usdc() {
  const asset = KNOWN_NETWORKS.get(NETWORK)?.usdc;
  if (asset === undefined) throw new Error(`${NETWORK} has no USDC`);
  return asset;
}

/** What runs. The gateways sell TOOLS for USDC of a local Base Sepolia. */
export interface ToolTestbed {
  readonly merchant: SampleBackend;
  readonly buyer: Buyer;
  /** The MCP endpoint of each gateway. */
  readonly urls: readonly string[];
  /** The first of them. */
  readonly url: string;
  /** Runs a purchase. @returns what it moved */
  balances(purchase: () => Promise<void>): Promise<Moved>;
  close(): Promise<void>;
}

/** What a purchase changed. */
export interface Moved {
  /** Base units that the buyer has less. */
  readonly spent: bigint;
  /** Base units that the payee has more. */
  readonly earned: bigint;
  /** Requests that reached the merchant. */
  readonly requests: number;
}

export async function openToolTestbed(): Promise<ToolTestbed> {
  const [chain, backend, redis] = await Promise.all([startChain(), startToolBackend(), startRedis()]);
  const usdc = await poseAsBaseSepolia(chain);
  const payTo = privateKeyToAddress(generatePrivateKey());
  const parts: TestGatewayParts = {
    chain,
    payTo,
    backendUrl: backend.url,
    facilitator: { mode: 'local' },
    overrides: { ...toolGatewayConfig(backend.url, 'USDC'), ...baseSepolia() },
    storage: { redis: { url: redis.url } },
  };
  const opened = await Promise.all([openGateway(parts), openGateway(parts)]);
  const urls = opened.map(({ url }) => `${url}/mcp`);
  const buyer = await createBuyer(usdc);
  return {
    merchant: backend,
    buyer,
    urls,
    url: urls[0] ?? '',
    async balances(purchase) {
      const [funds, earnings] = [await buyer.balance(), await usdc.balanceOf(payTo)];
      const requests = backend.requests.length;
      await purchase();
      return {
        spent: funds - (await buyer.balance()),
        earned: (await usdc.balanceOf(payTo)) - earnings,
        requests: backend.requests.length - requests,
      };
    },
    async close() {
      await Promise.all(opened.map((gateway) => gateway.close()));
      await Promise.all([chain.stop(), backend.stop(), redis.stop()]);
    },
  };
}
