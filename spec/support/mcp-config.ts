/** The tools of the MCP specs, as a configuration. */

import { type ConfigObject, CURRENCY } from './config.ts';
import { sampleResources } from './resources.ts';

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
