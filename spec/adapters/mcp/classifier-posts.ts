import fc from 'fast-check';

/** A POST as both classifiers read it: parsed body, headers by lower-case name. */
export interface Post {
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

export const META_VERSION = 'io.modelcontextprotocol/protocolVersion';
export const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
export const META_CLIENT = 'io.modelcontextprotocol/clientInfo';
export const MODERN = '2026-07-28';

/** Versions that are served, past, future, and no version at all. */
const VERSIONS = [MODERN, '2025-11-25', '2025-03-26', '2024-11-05', '2027-01-01', 'latest'] as const;
const METHODS = [
  ...['initialize', 'ping', 'tools/list', 'tools/call', 'server/discover', 'resources/read'],
  'notifications/initialized',
] as const;

/** How much more often a member is right than wrong in one way. */
const RIGHT_WEIGHT = 14;

/** The right value, and sometimes another one; undefined: the member or header is missing. */
function usually<T>(right: T, ...wrong: readonly unknown[]): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: RIGHT_WEIGHT, arbitrary: fc.constant(right) }, fc.constantFrom(...wrong));
}

/** A request of one era with every member that is checked, mostly right. */
function requests(modern: boolean, method: (typeof METHODS)[number]): fc.Arbitrary<Post> {
  const name = method === 'tools/call' ? 'Wetter in Zürich' : undefined;
  const encoded = name === undefined ? undefined : `=?base64?${Buffer.from(name).toString('base64')}?=`;
  return fc
    .record({
      jsonrpc: usually('2.0', '1.0', 2, undefined),
      id: usually(7, 'a', 0, '', null, 1.5, {}, undefined, undefined),
      method: usually(method, 7, undefined, 'nothing/known'),
      name: usually(name, undefined, 7),
      claim: usually(modern ? MODERN : undefined, undefined, ...VERSIONS, 20260728),
      capabilities: usually(modern ? {} : undefined, undefined, {}, 'all', []),
      client: usually(modern ? { name: 'spec', version: '1' } : undefined, undefined, null, 'spec'),
      meta: usually(KEPT, undefined, null, 'x', []),
      params: usually(KEPT, undefined, null, 'x', []),
      version: usually(modern ? MODERN : undefined, undefined, ...VERSIONS),
      methodHeader: usually(modern ? method : undefined, undefined, method, 'other', method.toUpperCase()),
      nameHeader: usually(modern ? encoded : undefined, undefined, encoded, 'other', '=?base64?!?='),
    })
    .map((parts) => {
      const claims = {
        [META_VERSION]: parts.claim,
        [META_CAPABILITIES]: parts.capabilities,
        [META_CLIENT]: parts.client,
      };
      const meta = parts.meta === KEPT ? claims : parts.meta;
      const params = parts.params === KEPT ? { name: parts.name, arguments: {}, _meta: meta } : parts.params;
      const headers = {
        'mcp-protocol-version': parts.version,
        'mcp-method': parts.methodHeader,
        'mcp-name': parts.nameHeader,
      };
      return overTheWire({ jsonrpc: parts.jsonrpc, id: parts.id, method: parts.method, params }, headers);
    });
}

const KEPT = Symbol('kept');

/** Leaves out members and headers that are undefined. */
function overTheWire(body: unknown, headers: object): Post {
  return JSON.parse(JSON.stringify({ body, headers })) as Post;
}

const single = fc
  .tuple(fc.boolean(), fc.constantFrom(...METHODS))
  .chain(([modern, method]) => requests(modern, method));

/** Batches, responses, and other JSON. */
const others = fc
  .oneof(
    fc.array(
      single.map(({ body }) => body),
      { maxLength: 2 },
    ),
    fc.constantFrom<unknown>(
      { jsonrpc: '2.0', id: 1, result: {} },
      { jsonrpc: '2.0', id: 1, error: { code: -32600, message: 'no' } },
      ...[{}, null, 'x', 7, true],
    ),
  )
  .map((body) => overTheWire(body, {}));

/** POSTs on both sides of every check. */
export const posts: fc.Arbitrary<Post> = fc.oneof({ weight: 15, arbitrary: single }, { weight: 1, arbitrary: others });
