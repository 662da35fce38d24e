import { MODERN_META } from '../../../spec/adapters/mcp/post.ts';
import type { Chance } from '../../chaos/sim/chance.ts';
import { HOST, head, JSON_TYPE } from './conversation.ts';

/** Texts with a special meaning for some parser. */
const TOKENS: readonly Buffer[] = [
  '\r\n',
  '\r\n\r\n',
  '\n',
  '\r',
  '\0',
  '\x7f',
  '\t',
  '\xff\xfe',
  '\xef\xbb\xbf',
  '\xed\xa0\x80',
  '\r\nTransfer-Encoding: chunked',
  '\r\nContent-Length: 0',
  '\r\nContent-Length: -1',
  '\r\nConnection: close',
  '\r\nExpect: 100-continue',
  '\r\nUpgrade: websocket',
  '\r\nContent-Encoding: gzip',
  '\r\nOrigin: null',
  '\r\n folded',
  '0\r\n\r\n',
  'FFFFFFFF\r\n',
  '%2e%2e%2f',
  '%00',
  '%c0%af',
  '/../',
  '//',
  '?',
  '#',
  '"__proto__":',
  '{"a":'.repeat(70),
  '['.repeat(70),
  '\\ud800',
  '1e999',
  '12345678901234567890',
  '""',
  'null',
  'HTTP/2.0',
].map((text) => Buffer.from(text, 'latin1'));

const NUMBERS = [
  '0',
  '-1',
  '1',
  '00',
  '65536',
  '262145',
  '2147483648',
  '9007199254740993',
  '18446744073709551616',
  '1e9',
];

type Mutation = (bytes: Buffer, dice: Chance, others: readonly Buffer[]) => Buffer;

const MUTATIONS: readonly Mutation[] = [
  /** Flips some bits. */
  (bytes, dice) => {
    const flipped = Buffer.from(bytes);
    for (let left = 1 + dice.below(4); left > 0 && bytes.length > 0; left -= 1) {
      const at = dice.below(bytes.length);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << dice.below(8));
    }
    return flipped;
  },
  /** The start of one request, the end of another. */
  (bytes, dice, others) => {
    const other = dice.pick(others);
    return Buffer.concat([bytes.subarray(0, dice.below(bytes.length + 1)), other.subarray(dice.below(other.length))]);
  },
  /** Repeats a piece. */
  (bytes, dice) => {
    const [from, to] = span(bytes, dice);
    return Buffer.concat([bytes.subarray(0, to), bytes.subarray(from, to), bytes.subarray(to)]);
  },
  /** Removes a piece. */
  (bytes, dice) => {
    const [from, to] = span(bytes, dice);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]);
  },
  /** Truncates the request. */
  (bytes, dice) => bytes.subarray(0, dice.below(bytes.length + 1)),
  /** Inserts a text. */
  (bytes, dice) => {
    const at = dice.below(bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, at), dice.pick(TOKENS), bytes.subarray(at)]);
  },
  /** Swaps two lines. */
  (bytes, dice) => {
    const lines = bytes.toString('latin1').split('\r\n');
    const [one, two] = [dice.below(lines.length), dice.below(lines.length)];
    const swapped = lines.map((line, at) => (at === one ? lines[two] : at === two ? lines[one] : line));
    return Buffer.from(swapped.join('\r\n'), 'latin1');
  },
  /** Replaces a number. */
  (bytes, dice) => {
    const found = [...bytes.toString('latin1').matchAll(/\d+/g)];
    if (found.length === 0) return bytes;
    const { index, 0: digits } = dice.pick(found);
    const number = Buffer.from(dice.pick(NUMBERS));
    return Buffer.concat([bytes.subarray(0, index), number, bytes.subarray(index + digits.length)]);
  },
];

function span(bytes: Buffer, dice: Chance): readonly [from: number, to: number] {
  const from = dice.below(bytes.length + 1);
  return [from, Math.min(bytes.length, from + 1 + dice.below(64))];
}

const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * Up to four mutations of one of the requests, one after the other. In every other one the head
 * stays and declares the true length of the mutated body: otherwise no mutant would pass the
 * framing.
 */
export function mutant(requests: readonly Buffer[], dice: Chance): Buffer {
  const request = dice.pick(requests);
  const bodyAt = request.indexOf(HEAD_END) + HEAD_END.length;
  if (bodyAt === request.length || dice.below(2) === 0) return mutated(request, requests, dice);
  const body = mutated(request.subarray(bodyAt), requests, dice);
  const head = request.toString('latin1', 0, bodyAt).replace(/(?<=content-length: )\d+/i, String(body.length));
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}

function mutated(request: Buffer, requests: readonly Buffer[], dice: Chance): Buffer {
  let bytes = request;
  for (let left = 1 + dice.below(4); left > 0; left -= 1) bytes = dice.pick(MUTATIONS)(bytes, dice, requests);
  return bytes;
}

type Fields = readonly string[];

const get = (path: string, ...lines: Fields): string => head(`GET ${path} HTTP/1.1`, HOST, ...lines);
const post = (path: string, body: unknown, ...lines: Fields): string => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return head(`POST ${path} HTTP/1.1`, HOST, JSON_TYPE, `Content-Length: ${Buffer.byteLength(text)}`, ...lines) + text;
};
const invoke = (id: string, input: unknown, ...lines: Fields): string =>
  post(`/api/resources/${id}/invoke`, input, ...lines);
const mcp = (method: string, params: object, ...lines: Fields): string =>
  post('/mcp', { jsonrpc: '2.0', id: 1, method, params }, 'Accept: application/json, text/event-stream', ...lines);
const a2a = (resource: string, input: object): string => {
  const parts = [{ data: { resource, input }, mediaType: 'application/json' }];
  const message = { messageId: '4f0c6f6e-0f7b-4f7e-9a53-1d1c6f0f2b11', role: 'ROLE_USER', parts };
  return post('/a2a', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }, 'A2A-Version: 1.0');
};

/**
 * A valid request of every route and channel. No HEAD: its answer cannot be read without knowing
 * the request.
 */
export function corpus(
  adminToken: string,
  proofs: { readonly echo: string; readonly report: string },
): readonly Buffer[] {
  const operator = `Authorization: Bearer ${adminToken}`;
  const chunkedBody = '7\r\n{"a":1}\r\n0\r\n\r\n';
  const modern = ['MCP-Protocol-Version: 2026-07-28', 'Mcp-Method: tools/call', 'Mcp-Name: free_echo'];
  const clientInfo = { name: 'spec', version: '1' };
  return [
    get('/api/resources'),
    get('/api/resources', 'If-None-Match: "a", W/"b", *'),
    get('/.well-known/agent-commerce'),
    get('/.well-known/agent-card.json'),
    get('/health'),
    get('http://shop.test/health'),
    get('other://shop.test'),
    get('/ready'),
    get('/api/receipts?limit=5&delivered=true', operator),
    get('/api/events?limit=5&type=payment.settled&cursor=evt_1-1', operator),
    get('/api/events', 'Authorization: Bearer wrong'),
    head('OPTIONS /mcp HTTP/1.1', HOST, 'Origin: http://page.test', 'Access-Control-Request-Method: POST'),
    head('DELETE /mcp HTTP/1.1', HOST),
    invoke('cities', {}, 'X-Request-Id: mine'),
    invoke('free_market_report', { city: 'São Paulo' }),
    invoke('free_echo', '{"a":[1,2.5,"x",null,true,{"b":"\\u00e9"}],"c":-1e3}'),
    head('POST /api/resources/free_echo/invoke HTTP/1.1', HOST, JSON_TYPE, 'Transfer-Encoding: chunked') + chunkedBody,
    invoke(
      'free_echo',
      '{"a":1}',
      'Expect: 100-continue',
      'traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    ),
    invoke('free_failing', { status: 404 }),
    invoke('echo', {}),
    invoke('market_report', { city: 'Berlin' }, `Payment-Signature: ${proofs.report}`),
    invoke('echo', {}, `Payment-Signature: ${proofs.echo}`, 'Idempotency-Key: one-key'),
    mcp('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }),
    mcp('tools/list', {}),
    mcp('tools/call', { name: 'free_echo', arguments: { a: 1 } }),
    mcp('tools/call', { name: 'echo', arguments: {}, _meta: { 'x402/payment': proofs.echo } }),
    mcp('tools/call', { name: 'free_echo', arguments: {}, _meta: MODERN_META }, ...modern),
    a2a('free_echo', { a: 1 }),
    a2a('market_report', { city: 'Berlin', _payment: proofs.report }),
    a2a('echo', {}),
  ].map((text) => Buffer.from(text));
}
