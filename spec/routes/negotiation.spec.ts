import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Response } from 'supertest';
import { errorOf } from '../adapters/a2a/post.ts';
import { assertAcpError } from '../adapters/acp/testbed.ts';
import { pathOf, ROUTES } from './table.ts';
import { envelope, type Sent, send, sharedRoutes } from './world.ts';

/** Largest body, bytes. */
const MAX_BODY_BYTES = 262_144;

/** One path of each adapter, and how it refuses a body for its type and for its size. */
const ADAPTERS: readonly (readonly [path: string, type: (a: Response) => void, size: (a: Response) => void])[] = [
  [
    '/api/resources/cities/invoke',
    envelope('UNSUPPORTED_MEDIA_TYPE'),
    envelope('PAYLOAD_TOO_LARGE', { maxBytes: MAX_BODY_BYTES }),
  ],
  ['/echo', envelope('UNSUPPORTED_MEDIA_TYPE'), envelope('PAYLOAD_TOO_LARGE', { maxBytes: MAX_BODY_BYTES })],
  ['/mcp', envelope('UNSUPPORTED_MEDIA_TYPE'), envelope('PAYLOAD_TOO_LARGE', { maxBytes: MAX_BODY_BYTES })],
  [
    '/a2a',
    envelope('UNSUPPORTED_MEDIA_TYPE'),
    (answer) => {
      const error = errorOf(answer, null, 413);
      assert.deepEqual([error.code, error.data[0]?.reason], [-32600, 'PAYLOAD_TOO_LARGE']);
    },
  ],
  [
    '/acp/checkout_sessions',
    (answer) => void assertAcpError(answer, 415, 'unsupported_media_type'),
    (answer) => void assertAcpError(answer, 413, 'request_body_too_large'),
  ],
];

/** Headers of a body that is not JSON in UTF-8, or is compressed. */
const NOT_JSON: readonly Readonly<Record<string, string>>[] = [
  {},
  { 'content-type': 'application/json', 'content-encoding': 'gzip' },
  ...[
    ...['', 'text/plain', 'text/json', 'text/html', 'application/x-www-form-urlencoded', 'application/xml'],
    ...['multipart/form-data; boundary=x', 'application/octet-stream', 'application/jsonp', 'application/json-seq'],
    ...['application/json, text/plain', 'application/json; charset=utf-16', 'application/json; charset=utf-7'],
    ...['application/json;charset=UTF-16LE', 'application/json; CHARSET=shift_jis'],
    ...['application/json; charset="iso-8859-1"', 'application/json; charset=latin1'],
  ].map((type) => ({ 'content-type': type })),
];

for (const [path, wrongType, tooLarge] of ADAPTERS)
  describe(`a body at ${path}`, () => {
    const world = sharedRoutes();
    const route = ROUTES.find((row) => row.path === path && row.method === 'POST') ?? assert.fail(path);
    const post = (headers: Sent['headers'], body = route.sent().body ?? '') => {
      const { 'content-type': _json, ...others } = route.sent().headers ?? {};
      return send(world().agents, 'POST', path, { headers: { ...others, ...headers }, body });
    };

    it('is 415 in any other type or coding', async () => {
      for (const headers of NOT_JSON) await post(headers).expect(415).expect(wrongType);
    });

    const suffixed = path.startsWith('/acp/') ? 415 : route.status;
    it(`is read as JSON in UTF-8, and ${suffixed} as a type that ends in +json`, async () => {
      for (const type of ['application/json', 'Application/JSON; charset="UTF-8"', 'application/json;charset=utf-8'])
        await post({ 'content-type': type }).expect(route.status);
      await post({ 'content-type': 'application/x+json' }).expect(suffixed);
    });

    it(`may have ${MAX_BODY_BYTES} bytes, and is 413 with one more`, async () => {
      const padded = (bytes: number): string => String(route.sent().body).padEnd(bytes);
      const json = { 'content-type': 'application/json' };
      await post(json, padded(MAX_BODY_BYTES)).expect(route.status);
      await post(json, padded(MAX_BODY_BYTES + 1))
        .expect(413)
        .expect(tooLarge);
    });
  });

describe('a call without a body', () => {
  const world = sharedRoutes();

  it('has the empty input, with a type and without', async () => {
    for (const headers of [{ 'content-type': 'application/json' }, {}]) {
      const { text } = await send(world().agents, 'POST', '/api/resources/cities/invoke', { headers }).expect(200);
      assert.match(text, /^\{"cities":/);
    }
  });

  it('asks for the price where the input has a property that it must have', async () => {
    const path = '/api/resources/market_report/invoke';
    const json = { 'content-type': 'application/json' };
    for (const headers of [{}, json]) await send(world().agents, 'POST', path, { headers }).expect(402);
    await send(world().agents, 'POST', path, { headers: json, body: '{}' })
      .expect(400)
      .expect(envelope('INPUT_INVALID'));
    const proof = { 'payment-signature': 'AAAA' };
    await send(world().agents, 'POST', path, { headers: proof }).expect(400).expect(envelope('INPUT_INVALID'));
  });

  it('is no JSON-RPC message', async () => {
    for (const path of ['/mcp', '/a2a']) {
      const { text } = await send(world().agents, 'POST', path, { headers: { 'a2a-version': '1.0' } });
      assert.equal((JSON.parse(text) as { error: { code: number } }).error.code, -32700, path);
    }
  });
});

describe('the media type of an answer', () => {
  const world = sharedRoutes();

  it('is that of the route, whatever the caller accepts', async () => {
    for (const route of ROUTES) {
      const { headers, ...sent } = route.sent();
      const accept = { accept: 'image/png, text/xml;q=0.5', 'accept-language': 'de' };
      const path = await pathOf(route, world().agents);
      const answer = await send(world()[route.app], route.method, path, {
        ...sent,
        headers: { ...headers, ...accept },
      });
      assert.equal(answer.status, route.status, path);
      const { 'content-type': type = '' } = answer.headers;
      assert.ok(typeof route.mediaType === 'string' ? type === route.mediaType : route.mediaType.test(type), type);
    }
  });
});
