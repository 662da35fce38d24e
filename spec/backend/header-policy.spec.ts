import assert from 'node:assert/strict';
import { type IncomingHttpHeaders, validateHeaderValue } from 'node:http';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ReceivedHeaders } from '../../src/backend/backend-exchange.ts';
import {
  type BackendHeaderFacts,
  backendHeaders,
  PAID_CACHE_CONTROL,
  relayedHeaders,
} from '../../src/backend/header-policy.ts';
import { answering, call, GET, LIMITS, POST, withBackend } from './call.ts';
import { answer } from './raw-backend.ts';

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
          'agent-commerce-payment': 'forged',
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

const RELAYED = [
  ...['content-type', 'content-language', 'content-disposition', 'etag', 'last-modified', 'link', 'retry-after'],
];
const NEVER = [
  ...['set-cookie', 'location', 'server', 'x-powered-by', 'access-control-allow-origin', 'payment-response'],
  ...['payment-required', 'x-request-id', 'www-authenticate', 'alt-svc', 'strict-transport-security'],
  ...['clear-site-data', 'connection', 'keep-alive', 'transfer-encoding', 'trailer', 'upgrade', 'proxy-authenticate'],
  ...['idempotent-replayed', 'agent-authorization-receipt'],
];

/** What was asked for is free, or paid. */
const FREE = { free: true };
const PAID = { free: false };

describe('headers relayed to the agent', () => {
  it('are those of the allow-list and no others', () => {
    const received = Object.fromEntries([...RELAYED, ...NEVER].map((name) => [name, 'v']));
    const expected = Object.fromEntries(RELAYED.map((name) => [name, 'v']));
    assert.deepEqual(relayedHeaders(received, FREE), expected);
  });

  const rows: readonly [
    rule: string,
    received: ReceivedHeaders,
    answer: { free: boolean; status?: number },
    relayed: IncomingHttpHeaders,
  ][] = [
    [
      'caching of a free answer is the backend’s',
      { 'cache-control': 'max-age=60' },
      FREE,
      { 'cache-control': 'max-age=60' },
    ],
    [
      'a paid answer is private, whatever the backend sends',
      { 'cache-control': 'public' },
      PAID,
      { 'cache-control': PAID_CACHE_CONTROL },
    ],
    ['a paid answer is private by default', {}, PAID, { 'cache-control': 'private, no-store' }],
    ['a nominated field stays behind', { connection: 'close, ETag', etag: '"a"', link: '<b>' }, FREE, { link: '<b>' }],
    [
      'nominated in a second Connection field',
      { connection: ['close', 'x-hop ,\tlink'], etag: '"a"', link: '<b>' },
      FREE,
      { etag: '"a"' },
    ],
    [
      'a paid answer stays private even when Connection names its caching',
      { connection: 'cache-control' },
      PAID,
      { 'cache-control': PAID_CACHE_CONTROL },
    ],
    [
      'repeated lists are one list',
      { link: ['<a>', '<b>'], 'content-language': ['en', 'it'] },
      FREE,
      { link: '<a>, <b>', 'content-language': 'en, it' },
    ],
    [
      'of repeated single fields the first counts',
      { 'content-type': ['text/csv', 'text/html'] },
      FREE,
      { 'content-type': 'text/csv' },
    ],
    [
      'a value that cannot be written is dropped',
      { etag: 'a\r\nset-cookie: x=1', link: '<\u0000>', 'retry-after': '5' },
      FREE,
      { 'retry-after': '5' },
    ],
    [
      'bytes beyond ASCII pass as they came',
      { 'content-disposition': 'attachment; filename="\u00c3\u00bc.csv"' },
      FREE,
      { 'content-disposition': 'attachment; filename="\u00c3\u00bc.csv"' },
    ],
    [
      'no link to the inner address',
      { link: ['</a>; rel=prev', '<http://127.0.0.1:3000/secret>; rel=next'], etag: '"1"' },
      FREE,
      { etag: '"1"' },
    ],
    ['a valid length', { 'content-length': '12' }, { ...FREE, status: 200 }, { 'content-length': '12' }],
    ['no length that is none', { 'content-length': '1e3' }, { ...FREE, status: 200 }, {}],
    ['no repeated length', { 'content-length': ['12', '12'] }, { ...FREE, status: 200 }, {}],
    ['no length of 204', { 'content-length': '12' }, { ...FREE, status: 204 }, {}],
    ['no length of 304', { 'content-length': '12' }, { ...FREE, status: 304 }, {}],
  ];
  for (const [rule, received, about, relayed] of rows)
    it(rule, () => assert.deepEqual(relayedHeaders(received, about), relayed));

  it('can always be written by Node, whatever the backend sent', () => {
    const name = fc.constantFrom(...RELAYED, ...NEVER, 'cache-control', 'content-length', '__proto__', 'constructor');
    const value = fc.oneof(fc.string({ unit: 'binary' }), fc.array(fc.string({ unit: 'binary' }), { maxLength: 3 }));
    const allowed = new Set([...RELAYED, 'cache-control', 'content-length']);
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value)), fc.boolean(), (fields, free) => {
        for (const [field, text] of Object.entries(relayedHeaders(Object.fromEntries(fields), { free, status: 200 }))) {
          assert.ok(allowed.has(field), field);
          validateHeaderValue(field, text);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('hold for an answer over a connection', async () => {
    const head = [
      'HTTP/1.1 200 OK',
      'Content-Type: application/json',
      'ETag: "v1"',
      'PAYMENT-RESPONSE: Zm9yZ2Vk',
      'Set-Cookie: a=1',
      'Set-Cookie: b=2',
      'Location: http://127.0.0.1:9/',
      'Connection: keep-alive, ETag',
      'Link: <a>',
      'Link: <b>',
      'Cache-Control: public',
    ].join('\r\n');
    await withBackend(
      (socket) => answer(socket, '{}', head),
      async (connection) => {
        const { headers, status, body } = await connection.exchange(GET, LIMITS);
        body.destroy();
        assert.deepEqual(relayedHeaders(headers, { free: false, status }), {
          'content-type': 'application/json',
          link: '<a>, <b>',
          'cache-control': PAID_CACHE_CONTROL,
          'content-length': '2',
        });
      },
    );
  });
});
