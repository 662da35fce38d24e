/** Valid requests of every route and channel, from which the mutator makes wrong ones. */

import { MODERN_META } from '../../../spec/adapters/mcp/post.ts';
import { HOST, head, JSON_TYPE } from './framing-case.ts';

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
