import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Answered } from '../../e2e/ask.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { ENABLED, type Headers, MODERN_META, modernHeaders, postMcp } from './post.ts';

type Message = Readonly<Record<string, unknown>>;

const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

const request = (method: string, params: object = {}): Message => ({ jsonrpc: '2.0', method, params });
const modern = (method: string, params: object = {}, meta: object = MODERN_META): Message =>
  request(method, { ...params, _meta: meta });
const call = (name: unknown, input: unknown = {}) => ({ name, arguments: input });
const without = (key: string): object =>
  Object.fromEntries(Object.entries(MODERN_META).filter(([name]) => name !== key));
const list = (meta: object = MODERN_META): Message => modern('tools/list', {}, meta);
const LIST = modernHeaders('tools/list');
const LEGACY_META = { ...MODERN_META, [VERSION]: '2025-11-25' };
const LATER = list({ ...MODERN_META, [VERSION]: '2027-01-01' });
const legacyCall = (name: unknown, input?: unknown): Message => request('tools/call', call(name, input));
const CITIES = modern('tools/call', call('cities'));
const named = (name?: string): Headers => modernHeaders('tools/call', name);

/** A row begins with the number of its check in mcp 3; without a code the request is served. */
const CASES: readonly (readonly [
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
  ['7 a version that is no date', request('ping'), 400, -32600, { 'mcp-protocol-version': 'latest' }],
  ['8 a modern header without a claim', request('tools/list'), 400, -32602, LIST],
  ['8 also of initialize', request('initialize'), 400, -32602, modernHeaders('initialize')],
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
  ['10 a legacy claim, of initialize too', modern('initialize', {}, LEGACY_META), 400, -32022],
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

/** Ids that a request may have; each must come back with its JSON type. */
const IDS = ['a', 7, 0] as const;

const HIDDEN = {
  name: 'Hidden',
  inputSchema: { type: 'object' },
  backend: { method: 'GET', path: '/cities' },
  pricing: { type: 'free' },
  expose: ['http'],
};

interface Answer {
  id?: unknown;
  result?: object;
  error?: { code: number; message: string; data?: object };
}

function read(answer: Answered): Answer {
  assert.equal(answer.headers['content-type'], 'application/json');
  assert.equal(answer.headers['cache-control'], 'no-store');
  assert.equal(answer.headers['mcp-session-id'], undefined);
  return JSON.parse(answer.text);
}

describe('the checks of a message', () => {
  let testbed: Testbed;
  let base: string;
  before(async () => {
    testbed = await openTestbed({ overrides: { ...ENABLED, resources: { hidden: HIDDEN } } });
    base = testbed.gateway.url;
  });
  after(() => testbed.close());

  for (const [name, message, status, code, headers] of CASES)
    it(`${name}: ${code ?? 'result'}, for every id`, async () => {
      for (const id of IDS) {
        const answer = await postMcp(base, { ...message, id }, headers);
        const body = read(answer);
        assert.equal(answer.status, status, answer.text);
        assert.equal(body.id, id);
        assert.equal(body.error?.code, code, answer.text);
        assert.equal('result' in body, code === undefined);
      }
    });

  it('4 without an id it is a notification: 202, and nothing runs', async () => {
    const before = testbed.backend.requests.length;
    for (const method of ['notifications/initialized', 'tools/call', 'nothing/known']) {
      const answer = await postMcp(base, request(method, call('cities')), modernHeaders('other'));
      assert.deepEqual([answer.status, answer.text], [202, '']);
    }
    assert.equal(testbed.backend.requests.length, before, 'no call reached the backend');
  });

  for (const [what, body, code] of [
    ...[null, 1.5, true, {}, ['a']].map((id) => [`5 the id ${JSON.stringify(id)}`, { ...request('ping'), id }, -32600]),
    ['no JSON', '{"jsonrpc":', -32700],
    ['nothing', '', -32700],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), -32700],
    ['a batch', [{ ...request('ping'), id: 1 }], -32600],
    ['an empty batch', [], -32600],
    ['a text', '"ping"', -32600],
    ['null', 'null', -32600],
    ['an id beyond a double', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', -32600],
  ] as const)
    it(`2 to 5 ${what}: ${code} without an id`, async () => {
      const answer = await postMcp(base, body);
      assert.equal(answer.status, 400);
      assert.deepEqual([read(answer).id, read(answer).error?.code], [null, code]);
    });

  for (const [what, params] of [
    ['a member twice', '{"a":1,"a":2}'],
    ['a name that changes prototypes', '{"constructor":1}'],
    ['a number beyond a double', '{"a":9007199254740993}'],
  ] as const)
    it(`3 ${what}: -32600 with the id of a lenient reading`, async () => {
      const answer = await postMcp(base, `{"jsonrpc":"2.0","id":7,"method":"ping","params":${params}}`);
      assert.deepEqual([answer.status, read(answer).id, read(answer).error?.code], [400, 7, -32600]);
    });

  it('10 names the served versions, as server/discover does', async () => {
    const meta = { ...MODERN_META, [VERSION]: '2027-01-01' };
    const refused = read(await postMcp(base, { ...modern('tools/list', {}, meta), id: 1 }));
    const discovered = read(
      await postMcp(base, { ...modern('server/discover'), id: 1 }, modernHeaders('server/discover')),
    );
    const { supported, requested } = (refused.error?.data ?? {}) as { supported?: string[]; requested?: string };
    assert.equal(requested, '2027-01-01');
    assert.deepEqual(supported, (discovered.result as { supportedVersions: string[] }).supportedVersions);
  });

  it('an unknown tool and one that is not exposed have the same error', async () => {
    const messages = await Promise.all(
      ['none', 'hidden'].map(async (name) =>
        read(await postMcp(base, { ...request('tools/call', call(name)), id: 1 })),
      ),
    );
    assert.deepEqual(messages[0], messages[1]);
  });

  it('initialize answers with the version that is asked for, or the newest of its era', async () => {
    for (const asked of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2099-01-01', undefined]) {
      const { result } = read(await postMcp(base, { ...request('initialize', { protocolVersion: asked }), id: 0 }));
      const { protocolVersion } = result as { protocolVersion: string };
      const served = ['2025-11-25', '2025-06-18', '2025-03-26'].find((version) => version === asked);
      assert.equal(protocolVersion, served ?? '2025-11-25');
    }
  });
});
