import { type Headers, MODERN_META, modernHeaders } from './post.ts';

export type Message = Readonly<Record<string, unknown>>;

export const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

export const request = (method: string, params: object = {}): Message => ({ jsonrpc: '2.0', method, params });
export const modern = (method: string, params: object = {}, meta: object = MODERN_META): Message =>
  request(method, { ...params, _meta: meta });
export const call = (name: unknown, input: unknown = {}) => ({ name, arguments: input });
const without = (key: string): object =>
  Object.fromEntries(Object.entries(MODERN_META).filter(([name]) => name !== key));
const list = (meta: object = MODERN_META): Message => modern('tools/list', {}, meta);
const LIST = modernHeaders('tools/list');
const LATER = list({ ...MODERN_META, [VERSION]: '2027-01-01' });
const legacyCall = (name: unknown, input?: unknown): Message => request('tools/call', call(name, input));
const CITIES = modern('tools/call', call('cities'));
const named = (name?: string): Headers => modernHeaders('tools/call', name);

/** A row begins with the number of its check in mcp 3; without a code the request is served. */
export const CASES: readonly (readonly [
  name: string,
  message: Message,
  status: number,
  code?: number | undefined,
  headers?: Headers,
])[] = [
  ['3 jsonrpc is not 2.0', { ...request('ping'), jsonrpc: '1.0' }, 400, -32600],
  ['3 jsonrpc is missing', { method: 'ping' }, 400, -32600],
  ['3 method is no string', { jsonrpc: '2.0', method: 7 }, 400, -32600],
  ['3 a response is no request', { jsonrpc: '2.0', result: {} }, 400, -32600],
  ['6 params is a list', { ...request('ping'), params: [] }, 400, -32602],
  [
    '7 a legacy version that is not served',
    request('tools/list'),
    400,
    -32600,
    { 'mcp-protocol-version': '2024-11-05' },
  ],
  ['8 a modern header without a claim', request('tools/list'), 400, -32602, LIST],
  ['8 a claim that is no string', list({ ...MODERN_META, [VERSION]: 20260728 }), 400, -32602, LIST],
  ['8 capabilities missing', list(without(CAPABILITIES)), 400, -32602, LIST],
  ['8 capabilities of the wrong type', list({ ...MODERN_META, [CAPABILITIES]: 'all' }), 400, -32602, LIST],
  ['9 header and claim differ', list(), 400, -32020, { ...LIST, 'mcp-protocol-version': '2025-11-25' }],
  ['10 a version that is not served', LATER, 400, -32022, { ...LIST, 'mcp-protocol-version': '2027-01-01' }],
  ['10 also without its header', LATER, 400, -32022],
  ['11 the version header is missing', list(), 400, -32020],
  ['11 Mcp-Method is missing', list(), 400, -32020, { 'mcp-protocol-version': '2026-07-28' }],
  ['11 Mcp-Method differs, also in case', list(), 400, -32020, modernHeaders('Tools/List')],
  ['11 Mcp-Name is missing', CITIES, 400, -32020, named()],
  ['11 Mcp-Name differs', CITIES, 400, -32020, named('market_report')],
  ['11 Mcp-Name names a tool, and the body none', modern('tools/call', call(undefined)), 400, -32020, named('cities')],
  ['11 Mcp-Name in base64 without its padding', CITIES, 400, -32020, named('=?base64?Y2l0aWVz=?=')],
  ['11 Mcp-Name in base64 with a foreign character', CITIES, 400, -32020, named('=?base64?Y2l0!aWVz?=')],
  ['12 an unknown method, modern', modern('resources/list'), 404, -32601, modernHeaders('resources/list')],
  ['12 initialize in the modern era', modern('initialize'), 404, -32601, modernHeaders('initialize')],
  ['12 ping in the modern era', modern('ping'), 404, -32601, modernHeaders('ping')],
  ['12 an unknown method, legacy', request('resources/list'), 200, -32601],
  ['12 server/discover in the legacy era', request('server/discover'), 200, -32601],
  ['13 a name that is no string', legacyCall(7), 200, -32602],
  ['13 arguments that are no object', legacyCall('cities', []), 200, -32602],
  ['an unknown tool', legacyCall('none'), 200, -32602],
  ['a tool that is not exposed here', legacyCall('hidden'), 200, -32602],
  ['a foreign cursor', request('tools/list', { cursor: 'x' }), 200, -32602],
  ['initialize', request('initialize', { protocolVersion: '2025-03-26' }), 200],
  ['ping', request('ping'), 200],
  ['tools/list, legacy', request('tools/list'), 200],
  ['tools/list, modern', list(), 200, undefined, LIST],
  ['server/discover', modern('server/discover'), 200, undefined, modernHeaders('server/discover')],
  ['tools/call, with the name in base64', CITIES, 200, undefined, named('=?base64?Y2l0aWVz?=')],
  [
    'tools/call without client info',
    modern('tools/call', call('cities'), without('io.modelcontextprotocol/clientInfo')),
    200,
    undefined,
    named('cities'),
  ],
];
