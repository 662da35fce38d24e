import assert from 'node:assert/strict';
import { type IncomingHttpHeaders, validateHeaderValue } from 'node:http';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ReceivedHeaders } from '../../src/backend/exchange.ts';
import { PAID_CACHE_CONTROL, relayedHeaders } from '../../src/backend/header-policy.ts';
import { GET, LIMITS, withBackend } from './call.ts';
import { answer } from './raw-backend.ts';

const RELAYED = [
  'content-type',
  'content-language',
  'content-disposition',
  'etag',
  'last-modified',
  'link',
  'retry-after',
];
const NEVER = [
  'set-cookie',
  'location',
  'server',
  'x-powered-by',
  'access-control-allow-origin',
  'payment-response',
  'payment-required',
  'x-request-id',
  'www-authenticate',
  'alt-svc',
  'strict-transport-security',
  'clear-site-data',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'trailer',
  'upgrade',
  'proxy-authenticate',
  'idempotent-replayed',
  'agent-authorization-receipt',
];

describe('headers relayed to the agent', () => {
  it('are those of the allow-list and no others', () => {
    const received = Object.fromEntries([...RELAYED, ...NEVER].map((name) => [name, 'v']));
    const expected = Object.fromEntries(RELAYED.map((name) => [name, 'v']));
    assert.deepEqual(relayedHeaders(received, { free: true }), expected);
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
      { free: true },
      { 'cache-control': 'max-age=60' },
    ],
    [
      'a paid answer is private, whatever the backend sends',
      { 'cache-control': 'public' },
      { free: false },
      { 'cache-control': PAID_CACHE_CONTROL },
    ],
    ['a paid answer is private by default', {}, { free: false }, { 'cache-control': 'private, no-store' }],
    [
      'a nominated field stays behind',
      { connection: 'close, ETag', etag: '"a"', link: '<b>' },
      { free: true },
      { link: '<b>' },
    ],
    [
      'nominated in a second Connection field',
      { connection: ['close', 'x-hop ,\tlink'], etag: '"a"', link: '<b>' },
      { free: true },
      { etag: '"a"' },
    ],
    [
      'a paid answer stays private even when Connection names its caching',
      { connection: 'cache-control' },
      { free: false },
      { 'cache-control': PAID_CACHE_CONTROL },
    ],
    [
      'repeated lists are one list',
      { link: ['<a>', '<b>'], 'content-language': ['en', 'it'] },
      { free: true },
      { link: '<a>, <b>', 'content-language': 'en, it' },
    ],
    [
      'of repeated single fields the first counts',
      { 'content-type': ['text/csv', 'text/html'] },
      { free: true },
      { 'content-type': 'text/csv' },
    ],
    [
      'a value that cannot be written is dropped',
      { etag: 'a\r\nset-cookie: x=1', link: '<\u0000>', 'retry-after': '5' },
      { free: true },
      { 'retry-after': '5' },
    ],
    [
      'bytes beyond ASCII pass as they came',
      { 'content-disposition': 'attachment; filename="\u00c3\u00bc.csv"' },
      { free: true },
      { 'content-disposition': 'attachment; filename="\u00c3\u00bc.csv"' },
    ],
    [
      'no link to the inner address',
      { link: ['</a>; rel=prev', '<http://127.0.0.1:3000/secret>; rel=next'], etag: '"1"' },
      { free: true },
      { etag: '"1"' },
    ],
    ['a valid length', { 'content-length': '12' }, { free: true, status: 200 }, { 'content-length': '12' }],
    ['no length that is none', { 'content-length': '1e3' }, { free: true, status: 200 }, {}],
    ['no repeated length', { 'content-length': ['12', '12'] }, { free: true, status: 200 }, {}],
    ['no length of 204', { 'content-length': '12' }, { free: true, status: 204 }, {}],
    ['no length of 304', { 'content-length': '12' }, { free: true, status: 304 }, {}],
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
