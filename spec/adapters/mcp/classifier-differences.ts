import { META_CAPABILITIES, META_VERSION, MODERN, type Post } from './classifier-posts.ts';

/** The era that serves a POST, another kind of message, or HTTP status and code of a refusal. */
export type Verdict = 'legacy' | 'modern' | 'notification' | 'batch' | 'response' | `${number} ${number}`;

/** The facts of a POST that the rows below read. */
export interface Facts {
  readonly method: unknown;
  readonly hasId: boolean;
  readonly params: unknown;
  readonly hasClaim: boolean;
  readonly claim: unknown;
  readonly toolName: unknown;
  readonly version: string | undefined;
  readonly methodHeader: string | undefined;
  readonly nameHeader: string | undefined;
}

/** A rule by which the gateway differs from the classifier of the official SDK. */
export interface Difference {
  /** The rule of the contract. */
  readonly rule: string;
  readonly sdk: readonly Verdict[];
  readonly gateway: readonly Verdict[];
  when(facts: Facts): boolean;
  readonly example: Post;
}

const LEGACY_VERSIONS: readonly unknown[] = ['2025-11-25', '2025-06-18', '2025-03-26'];
const LEGACY_METHODS: readonly unknown[] = ['initialize', 'ping', 'tools/list', 'tools/call'];
const MODERN_METHODS: readonly unknown[] = ['server/discover', 'tools/list', 'tools/call'];
const DATE = /^\d{4}-\d{2}-\d{2}$/;

const META = { [META_VERSION]: MODERN, [META_CAPABILITIES]: {} } as const;
const VERSION_HEADER = { 'mcp-protocol-version': MODERN } as const;
const post = (message: object, headers: Post['headers'] = {}): Post => ({
  body: { jsonrpc: '2.0', ...message },
  headers,
});

/** A name as the header that repeats it. */
function encoded(name: unknown): string | undefined {
  return typeof name === 'string' ? `=?base64?${Buffer.from(name).toString('base64')}?=` : undefined;
}

/** Checks after the classifier, which refuse some of what it accepts. */
export const LATER: readonly Difference[] = [
  {
    rule: 'a method that is not of the legacy era: 200 and -32601',
    sdk: ['legacy'],
    gateway: ['200 -32601'],
    when: ({ method }) => !LEGACY_METHODS.includes(method),
    example: post({ id: 1, method: 'resources/read' }),
  },
  {
    rule: 'a method that is not of the modern era: 404 and -32601',
    sdk: ['modern'],
    gateway: ['404 -32601'],
    when: ({ method }) => !MODERN_METHODS.includes(method),
    example: post({ id: 1, method: 'ping', params: { _meta: META } }, { ...VERSION_HEADER, 'mcp-method': 'ping' }),
  },
  {
    rule: 'a modern version that is not served: -32022',
    sdk: ['modern'],
    gateway: ['400 -32022'],
    when: ({ claim }) => claim !== MODERN,
    example: post({ id: 1, method: 'tools/list', params: { _meta: { ...META, [META_VERSION]: '2027-01-01' } } }),
  },
  {
    rule: 'missing headers, or headers that do not repeat the body: -32020',
    sdk: ['modern'],
    gateway: ['400 -32020'],
    when: ({ method, toolName, version, methodHeader, nameHeader }) =>
      version === undefined || methodHeader !== method || (method === 'tools/call' && nameHeader !== encoded(toolName)),
    example: post({ id: 1, method: 'tools/list', params: { _meta: META } }, VERSION_HEADER),
  },
  {
    rule: 'a legacy version header that is not served: 400',
    sdk: ['legacy'],
    gateway: ['400 -32600'],
    when: ({ version }) => version !== undefined && !LEGACY_VERSIONS.includes(version),
    example: post({ id: 1, method: 'ping' }, { 'mcp-protocol-version': '2024-11-05' }),
  },
];

/** Decisions of the contract. */
export const DECIDED: readonly Difference[] = [
  {
    rule: 'batches are served in no era',
    sdk: ['batch'],
    gateway: ['400 -32600'],
    when: () => true,
    example: { body: [{ jsonrpc: '2.0', id: 1, method: 'ping' }], headers: {} },
  },
  {
    rule: 'responses are refused',
    sdk: ['response'],
    gateway: ['400 -32600'],
    when: () => true,
    example: post({ id: 1, result: {} }),
  },
  {
    rule: 'a notification is accepted and dropped before anything in it is read',
    sdk: ['400 -32020', '400 -32600', '400 -32602'],
    gateway: ['notification'],
    when: ({ hasId, method }) => !hasId && typeof method === 'string',
    example: post({ method: 'notifications/initialized' }, { ...VERSION_HEADER, 'mcp-method': 'other' }),
  },
  {
    rule: 'params of the wrong type are invalid params',
    sdk: ['400 -32600'],
    gateway: ['400 -32602'],
    when: ({ hasId, params }) =>
      hasId && params !== undefined && (typeof params !== 'object' || params === null || Array.isArray(params)),
    example: post({ id: 1, method: 'ping', params: [] }),
  },
  {
    rule: 'a claim makes every method modern, initialize too',
    sdk: ['legacy', '400 -32020'],
    gateway: ['400 -32020', '400 -32022', '400 -32602', '404 -32601'],
    when: ({ method, hasClaim }) => method === 'initialize' && hasClaim,
    example: post({ id: 1, method: 'initialize', params: { _meta: { ...META, [META_VERSION]: '2025-11-25' } } }),
  },
  {
    rule: 'a modern header without a claim is a malformed request of any method, initialize too',
    sdk: ['400 -32020'],
    gateway: ['400 -32602'],
    when: ({ method, hasClaim, version = '' }) =>
      method === 'initialize' && !hasClaim && DATE.test(version) && version >= MODERN,
    example: post({ id: 1, method: 'initialize' }, VERSION_HEADER),
  },
  {
    rule: 'a version header that is not a date is not modern',
    sdk: ['400 -32020', '400 -32602'],
    gateway: ['400 -32600'],
    when: ({ hasClaim, version = '' }) => !hasClaim && !DATE.test(version),
    example: post({ id: 1, method: 'ping' }, { 'mcp-protocol-version': 'latest' }),
  },
  {
    rule: 'the version is checked before the headers that repeat the body',
    sdk: ['400 -32020'],
    gateway: ['400 -32022'],
    when: ({ claim, version = claim }) => claim !== MODERN && version === claim,
    example: post(
      { id: 1, method: 'tools/list', params: { _meta: { ...META, [META_VERSION]: '2027-01-01' } } },
      { 'mcp-method': 'other' },
    ),
  },
];
