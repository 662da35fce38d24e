import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type BackendHeaderFacts, backendHeaders } from '../../src/backend/header-policy.ts';
import { answering, call, GET, POST, withBackend } from './call.ts';

const FACTS: BackendHeaderFacts = { configured: {}, requestId: 'req_1', protocol: 'mcp', resourceId: 'market_report' };
const ALWAYS = {
  'accept-encoding': 'identity',
  'x-request-id': 'req_1',
  'agent-commerce-protocol': 'mcp',
  'agent-commerce-resource': 'market_report',
};
const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

describe('headers to the backend', () => {
  const rows: readonly [rule: string, facts: Partial<BackendHeaderFacts>, added: Record<string, string>][] = [
    ['a free call', {}, {}],
    ['configured ones, by lower-case name', { configured: { 'X-Api-Key': 'k' } }, { 'x-api-key': 'k' }],
    [
      'what the caller of a call in place may bring, unless it is configured',
      { caller: { cookie: 'a=b', authorization: 'theirs' }, configured: { Authorization: 'configured' } },
      { cookie: 'a=b', authorization: 'configured' },
    ],
    ['the media type of the body', { contentType: 'application/json' }, { 'content-type': 'application/json' }],
    [
      'a paid call: payer, receipt and the derived key',
      { payer: '0xabc', receiptId: 'receipt_1', idempotencyKey: 'pay_1' },
      { 'agent-commerce-payer': '0xabc', 'agent-commerce-receipt': 'receipt_1', 'idempotency-key': 'pay_1' },
    ],
    [
      'configuration cannot set headers of the gateway or of the connection',
      {
        configured: {
          'Agent-Commerce-Payer': '0xforged',
          'agent-commerce-receipt': 'forged',
          'X-Request-Id': 'forged',
          'accept-encoding': 'gzip',
          host: 'evil.test',
          'Content-Length': '1',
          'transfer-encoding': 'chunked',
          connection: 'x-api-key',
          upgrade: 'h2c',
          expect: '100-continue',
          te: 'trailers',
        },
      },
      {},
    ],
    ['a valid traceparent', { traceparent: TRACEPARENT }, { traceparent: TRACEPARENT }],
    [
      'a valid tracestate beside it',
      { traceparent: TRACEPARENT, tracestate: 'rojo=00f067aa0ba902b7,fw529a3039@dt=FfAAA1' },
      { traceparent: TRACEPARENT, tracestate: 'rojo=00f067aa0ba902b7,fw529a3039@dt=FfAAA1' },
    ],
    ['no tracestate alone', { tracestate: 'rojo=1' }, {}],
    ...[
      TRACEPARENT.toUpperCase(),
      TRACEPARENT.replace('00-', 'ff-'),
      `${TRACEPARENT}-extra`,
      '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
      '00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01',
      `${TRACEPARENT}\r\nx-evil: 1`,
      '',
    ].map((traceparent): [string, Partial<BackendHeaderFacts>, Record<string, string>] => [
      `no invalid traceparent: ${JSON.stringify(traceparent)}`,
      { traceparent, tracestate: 'rojo=1' },
      {},
    ]),
    ...[
      'noequals',
      'a=1,a=2',
      'a=',
      'A=1',
      'a=b=c',
      'a=ü',
      `a=${'x'.repeat(257)}`,
      Array.from({ length: 33 }, (_, i) => `k${i}=1`).join(','),
      `a=1,${' '.repeat(512)}b=2`,
      'a=1\r\nx-evil: 1',
      ',,',
    ].map((tracestate): [string, Partial<BackendHeaderFacts>, Record<string, string>] => [
      `no invalid tracestate: ${JSON.stringify(tracestate).slice(0, 40)}`,
      { traceparent: TRACEPARENT, tracestate },
      { traceparent: TRACEPARENT },
    ]),
  ];
  for (const [rule, facts, added] of rows)
    it(rule, () => assert.deepEqual(backendHeaders({ ...FACTS, ...facts }), { ...ALWAYS, ...added }));

  it('are all that the backend receives, with the gateway’s own host and length', async () => {
    await withBackend(answering, async (connection, backend) => {
      const forged = { host: 'evil.test', 'content-length': '99' };
      const headers = { ...backendHeaders({ ...FACTS, contentType: 'application/json' }), ...forged };
      await call(connection, { ...POST, headers });
      await call(connection, { ...GET, headers: backendHeaders(FACTS) });
      await call(connection, { ...POST, body: undefined, headers: {} });
      const host = `host: ${new URL(backend.origin).host}`;
      const ours = [...Object.entries(ALWAYS)].map(([name, value]) => `${name}: ${value}`);
      const seen = backend.requests.map(({ head }) => head.split('\r\n').sort());
      const expected = [
        ['POST /orders HTTP/1.1', 'connection: keep-alive', host, ...ours]
          .concat('content-type: application/json', 'content-length: 7')
          .sort(),
        ['GET /reports/rome?year=2026 HTTP/1.1', 'connection: keep-alive', host, ...ours].sort(),
        ['POST /orders HTTP/1.1', 'connection: keep-alive', host, 'content-length: 0'].sort(),
      ];
      assert.deepEqual(seen, expected);
      assert.equal(backend.requests[0]?.body.toString(), '{"n":1}');
    });
  });
});
