import { MODERN_META, modernHeaders } from './post.ts';

/** Ids that a request may have; each must come back with its JSON type. */
export const IDS = ['a', 7, 0] as const;
export const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

/** One rung: what is sent besides the id, and what comes back. */
export interface Rung {
  readonly name: string;
  readonly message: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly code?: number;
}

export const request = (method: string, params: object = {}): Rung['message'] => ({ jsonrpc: '2.0', method, params });
export const modern = (method: string, params: object = {}, meta: object = MODERN_META): Rung['message'] =>
  request(method, { ...params, _meta: meta });
export const call = (name: unknown, input: unknown = {}) => ({ name, arguments: input });
const without = (key: string): object =>
  Object.fromEntries(Object.entries(MODERN_META).filter(([name]) => name !== key));

export const RUNGS: readonly Rung[] = [
  { name: '5 jsonrpc is not 2.0', message: { ...request('ping'), jsonrpc: '1.0' }, status: 400, code: -32600 },
  { name: '5 jsonrpc is missing', message: { method: 'ping' }, status: 400, code: -32600 },
  { name: '5 method is no string', message: { jsonrpc: '2.0', method: 7 }, status: 400, code: -32600 },
  { name: '5 a response is no request', message: { jsonrpc: '2.0', result: {} }, status: 400, code: -32600 },
  { name: '5 params is a list', message: { ...request('ping'), params: [] }, status: 400, code: -32602 },
  {
    name: '8 modern header without a claim',
    message: request('tools/list'),
    headers: modernHeaders('tools/list'),
    status: 400,
    code: -32602,
  },
  {
    name: '8 a claim that is no string',
    message: modern('tools/list', {}, { ...MODERN_META, [VERSION]: 20260728 }),
    headers: modernHeaders('tools/list'),
    status: 400,
    code: -32602,
  },
  {
    name: '8 capabilities missing',
    message: modern('tools/list', {}, without(CAPABILITIES)),
    headers: modernHeaders('tools/list'),
    status: 400,
    code: -32602,
  },
  {
    name: '8 capabilities of the wrong type',
    message: modern('tools/list', {}, { ...MODERN_META, [CAPABILITIES]: 'all' }),
    headers: modernHeaders('tools/list'),
    status: 400,
    code: -32602,
  },
  {
    name: '9 header and claim differ',
    message: modern('tools/list'),
    headers: { ...modernHeaders('tools/list'), 'mcp-protocol-version': '2025-11-25' },
    status: 400,
    code: -32020,
  },
  {
    name: '10 a version that is not served',
    message: modern('tools/list', {}, { ...MODERN_META, [VERSION]: '2027-01-01' }),
    headers: { ...modernHeaders('tools/list'), 'mcp-protocol-version': '2027-01-01' },
    status: 400,
    code: -32022,
  },
  {
    name: '10 also without its header',
    message: modern('tools/list', {}, { ...MODERN_META, [VERSION]: '2027-01-01' }),
    status: 400,
    code: -32022,
  },
  { name: '11 the version header is missing', message: modern('tools/list'), status: 400, code: -32020 },
  {
    name: '11 Mcp-Method is missing',
    message: modern('tools/list'),
    headers: { 'mcp-protocol-version': '2026-07-28' },
    status: 400,
    code: -32020,
  },
  {
    name: '11 Mcp-Method differs, also in case',
    message: modern('tools/list'),
    headers: modernHeaders('Tools/List'),
    status: 400,
    code: -32020,
  },
  {
    name: '11 Mcp-Name is missing',
    message: modern('tools/call', call('cities')),
    headers: modernHeaders('tools/call'),
    status: 400,
    code: -32020,
  },
  {
    name: '11 Mcp-Name differs',
    message: modern('tools/call', call('cities')),
    headers: modernHeaders('tools/call', 'market_report'),
    status: 400,
    code: -32020,
  },
  {
    name: '11 Mcp-Name names a tool that the body does not',
    message: modern('tools/call', call(undefined)),
    headers: modernHeaders('tools/call', 'cities'),
    status: 400,
    code: -32020,
  },
  {
    name: '11 Mcp-Name in base64 without its padding',
    message: modern('tools/call', call('cities')),
    headers: modernHeaders('tools/call', '=?base64?Y2l0aWVz=?='),
    status: 400,
    code: -32020,
  },
  {
    name: '11 Mcp-Name in base64 with a foreign character',
    message: modern('tools/call', call('cities')),
    headers: modernHeaders('tools/call', '=?base64?Y2l0!aWVz?='),
    status: 400,
    code: -32020,
  },
  {
    name: '12 an unknown method, modern',
    message: modern('resources/list'),
    headers: modernHeaders('resources/list'),
    status: 404,
    code: -32601,
  },
  {
    name: '12 initialize is gone in the modern era',
    message: modern('initialize'),
    headers: modernHeaders('initialize'),
    status: 404,
    code: -32601,
  },
  { name: '12 ping, too', message: modern('ping'), headers: modernHeaders('ping'), status: 404, code: -32601 },
  { name: '12 an unknown method, legacy', message: request('resources/list'), status: 200, code: -32601 },
  {
    name: '12 server/discover is none of the legacy era',
    message: request('server/discover'),
    status: 200,
    code: -32601,
  },
  {
    name: '12 a legacy version that is not served',
    message: request('tools/list'),
    headers: { 'mcp-protocol-version': '2024-11-05' },
    status: 400,
    code: -32600,
  },
  { name: '13 an unknown tool', message: request('tools/call', call('none')), status: 200, code: -32602 },
  {
    name: '13 a tool that is not exposed here',
    message: request('tools/call', call('hidden')),
    status: 200,
    code: -32602,
  },
  { name: '13 a name that is no string', message: request('tools/call', call(7)), status: 200, code: -32602 },
  {
    name: '13 arguments that are no object',
    message: request('tools/call', call('cities', [])),
    status: 200,
    code: -32602,
  },
  { name: '13 a cursor of somebody else', message: request('tools/list', { cursor: 'x' }), status: 200, code: -32602 },
  { name: 'initialize', message: request('initialize', { protocolVersion: '2025-03-26' }), status: 200 },
  { name: 'ping', message: request('ping'), status: 200 },
  { name: 'tools/list, legacy', message: request('tools/list'), status: 200 },
  { name: 'tools/list, modern', message: modern('tools/list'), headers: modernHeaders('tools/list'), status: 200 },
  {
    name: 'server/discover',
    message: modern('server/discover'),
    headers: modernHeaders('server/discover'),
    status: 200,
  },
  {
    name: 'tools/call, with the name in base64',
    message: modern('tools/call', call('cities')),
    headers: modernHeaders('tools/call', '=?base64?Y2l0aWVz?='),
    status: 200,
  },
  {
    name: 'tools/call without client info',
    message: modern('tools/call', call('cities'), without('io.modelcontextprotocol/clientInfo')),
    headers: modernHeaders('tools/call', 'cities'),
    status: 200,
  },
];
