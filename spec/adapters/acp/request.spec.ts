import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AcpError } from '../../../src/adapters/acp/error.ts';
import { routeOf, withoutIds } from '../../../src/adapters/acp/request.ts';
import { dial, exchange, received } from '../../server/http/raw.ts';
import {
  askAcp,
  assertAcpError,
  CART,
  createHead,
  type Headers,
  rawCreate,
  refusalIn,
  sharedCheckoutTestbed,
} from './testbed.ts';

const codeOf = (method: string, path: string): string => {
  try {
    return routeOf(method, path).operation;
  } catch (thrown) {
    assert.ok(thrown instanceof AcpError);
    return thrown.code;
  }
};

describe('the routes of the checkout service', () => {
  const served = [
    ['POST', '/checkout_sessions', 'createCheckoutSession', undefined],
    ['POST', '/checkout_sessions/cs_1', 'updateCheckoutSession', 'cs_1'],
    ['GET', '/checkout_sessions/cs_1', 'getCheckoutSession', 'cs_1'],
    ['POST', '/checkout_sessions/cs_1/complete', 'completeCheckoutSession', 'cs_1'],
    ['POST', '/checkout_sessions/cs_1/cancel', 'cancelCheckoutSession', 'cs_1'],
    // Ids that are names of routes are ids all the same.
    ['GET', '/checkout_sessions/complete', 'getCheckoutSession', 'complete'],
    ['POST', '/checkout_sessions/cancel/cancel', 'cancelCheckoutSession', 'cancel'],
  ] as const;
  it('are those of the protocol', () => {
    for (const [method, path, operation, sessionId] of served)
      assert.deepEqual(routeOf(method, path), { operation, sessionId }, `${method} ${path}`);
  });

  const ids = [
    ['gid%3A%2F%2Fshop%2FCheckout%2F1', 'gid://shop/Checkout/1'],
    ['gid:%2f%2fshop%2fCheckout%2f1', 'gid://shop/Checkout/1'],
    ['a%252Fb', 'a%2Fb'],
    ['%C3%A9t%C3%A9', 'été'],
    ['a.b', 'a.b'],
    ['...', '...'],
    ["~!$&'()*+,;=:@-_", "~!$&'()*+,;=:@-_"],
    ['x'.repeat(256), 'x'.repeat(256)],
    [encodeURIComponent('🧦'.repeat(256)), '🧦'.repeat(256)],
  ] as const;
  it('have the session id as one segment, which is decoded once', () => {
    for (const [segment, id] of ids) assert.equal(routeOf('GET', `/checkout_sessions/${segment}`).sessionId, id);
  });

  const nowhere = [
    ...['', '/', '/checkout_sessions/', '/checkout_sessions//complete', '/checkout_sessions/cs_1/'],
    ...['/checkout_sessions/cs_1/complete/', '/checkout_sessions/cs_1/refund', '//checkout_sessions'],
    ...['/Checkout_Sessions', '/checkout%5Fsessions', '/%63heckout_sessions', '/checkout_sessions/cs_1/%63omplete'],
    ...['/checkout_sessions/.', '/checkout_sessions/..', '/checkout_sessions/%2e%2e', '/checkout_sessions/%2E'],
    ...['/checkout_sessions/a%2F..%2Fb', '/checkout_sessions/a%2f%2e%2e%2fb', '/checkout_sessions/%2Fb'],
    ...['/checkout_sessions/b%2F', '/checkout_sessions/a%2F%2Fb', '/checkout_sessions/a%2F..%2Fb%3A%2F%2Fc'],
    ...['/checkout_sessions/gid%3A%2F%2F', '/checkout_sessions/gid%3A%2F%2F%2Fx', '/checkout_sessions/a/../b'],
    ...['/checkout_sessions/a%00b', '/checkout_sessions/a%0Ab', '/checkout_sessions/a%7Fb'],
    ...['/checkout_sessions/a%C2%85b', '/checkout_sessions/%ff', '/checkout_sessions/%C0%AE'],
    ...['/checkout_sessions/%zz', '/checkout_sessions/%2', '/checkout_sessions/a#b', '/checkout_sessions/a\\b'],
    ...['/checkout_sessions/a"b', '/checkout_sessions/\u00e9', `/checkout_sessions/${'x'.repeat(257)}`],
  ];
  it('have nothing in any other spelling, whatever the method', () => {
    for (const path of nowhere)
      for (const method of ['GET', 'POST', 'PUT']) assert.equal(codeOf(method, path), 'not_found', path);
  });

  const refused = [
    ['GET', '/checkout_sessions', 'POST'],
    ['DELETE', '/checkout_sessions/cs_1', 'POST, GET'],
    ['HEAD', '/checkout_sessions/cs_1', 'POST, GET'],
    ['OPTIONS', '/checkout_sessions/cs_1', 'POST, GET'],
    ['GET', '/checkout_sessions/cs_1/complete', 'POST'],
    ['get', '/checkout_sessions/cs_1/cancel', 'POST'],
  ] as const;
  it('refuse another method with those of the path', () => {
    for (const [method, path, allow] of refused)
      assert.throws(
        () => routeOf(method, path),
        (error) => error instanceof AcpError && error.code === 'method_not_allowed' && error.headers['allow'] === allow,
      );
  });

  it('are in the log without ids and other text of callers', () => {
    assert.equal(withoutIds('/checkout_sessions/cs_1/complete'), '/checkout_sessions/*/complete');
    assert.equal(withoutIds('/checkout_sessions/cs_1/../token'), '/checkout_sessions/*/*/*');
  });
});

const open = sharedCheckoutTestbed();

const create = (headers: Headers, body?: string | Buffer) =>
  askAcp(open.gateway.url, { headers, ...(body === undefined ? {} : { body }) });
const readSession = (path: string, headers: Headers) => askAcp(open.gateway.url, { method: 'GET', path, headers });

describe('the version of a checkout call', () => {
  it('is one that is served, once, for reading as well', async () => {
    const refused = [
      ...[undefined, ''].map((version) => [version, 'missing_api_version'] as const),
      ...['latest', '2026-01-30', '2026-04-18', 'v2026-04-17', '2026-04-17, 2026-04-17'].map(
        (version) => [version, 'unsupported_api_version'] as const,
      ),
    ];
    for (const [version, code] of refused) {
      const document = assertAcpError(await create({ 'api-version': version }), 400, code);
      assert.deepEqual(document['supported_versions'], ['2026-04-17']);
    }
    const read = await readSession('/checkout_sessions/cs_1', { 'api-version': undefined });
    assertAcpError(read, 400, 'missing_api_version');
    const twice = await rawCreate(open.gateway.url, ['API-Version: 2026-04-17', 'API-Version: 2026-04-17']);
    assert.deepEqual(refusalIn(twice), { status: 400, code: 'unsupported_api_version' });
  });
});

describe('the key of a checkout call', () => {
  it('has 1 to 255 printable characters, and is echoed, with a refusal as well', async () => {
    for (const key of ['k', 'a b', `${'x'.repeat(254)}~`]) {
      const answer = await create({ 'idempotency-key': key });
      assert.equal(answer.status, 201);
      assert.equal(answer.headers['idempotency-key'], key);
    }
    const refused = await create({ 'idempotency-key': 'echo-me' }, '{}');
    assertAcpError(refused, 400, 'invalid_request_body');
    assert.equal(refused.headers['idempotency-key'], 'echo-me');
  });
  it('is required, and refused in another form', async () => {
    for (const key of [undefined, ''])
      assertAcpError(await create({ 'idempotency-key': key }), 400, 'idempotency_key_required');
    for (const key of ['x'.repeat(256), 'a\tb', 'clé', '\u00a0a\u00a0', '\u00a0']) {
      const answer = await create({ 'idempotency-key': key });
      assertAcpError(answer, 400, 'idempotency_key_invalid');
      assert.equal(answer.headers['idempotency-key'], undefined);
    }
  });
  it('is trimmed: the same key with spaces around it is the same key', async () => {
    const first = await rawCreate(open.gateway.url, ['Idempotency-Key:   padded  ']);
    const second = await rawCreate(open.gateway.url, ['Idempotency-Key: padded']);
    assert.match(first, /^HTTP\/1\.1 201[\s\S]*\r\nidempotency-key: padded\r\n/);
    assert.match(second, /\r\nidempotent-replayed: true\r\n/);
  });
  it('comes once', async () =>
    assert.deepEqual(refusalIn(await rawCreate(open.gateway.url, ['Idempotency-Key: a', 'Idempotency-Key: a'])), {
      status: 400,
      code: 'idempotency_key_invalid',
    }));
  it('is neither read nor echoed when a session is read', async () => {
    const { id } = JSON.parse((await create({})).text) as { id: string };
    for (const key of ['k', 'x'.repeat(300)]) {
      const answer = await readSession(`/checkout_sessions/${id}`, { 'idempotency-key': key });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['idempotency-key'], undefined);
      assert.equal(answer.headers['idempotent-replayed'], undefined);
    }
  });
});

describe('the media type of a checkout call', () => {
  const served = [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json ; profile="a;b" ; charset=utf-8',
    'application/json;',
    'application/json; ; charset=utf-8;',
  ];
  it('is JSON in UTF-8, with or without parameters', async () => {
    for (const type of served) assert.equal((await create({ 'content-type': type })).status, 201, type);
  });

  const refused = [
    undefined,
    'text/plain',
    'application/jsonp',
    'application/vnd.api+json',
    'application/json, text/plain',
    'application/json; charset=utf-16',
    'application/json; charset=utf-8; charset=latin1',
    'application/json; charset',
  ];
  it('is no other one', async () => {
    for (const type of refused) assertAcpError(await create({ 'content-type': type }), 415, 'unsupported_media_type');
  });

  it('comes once, whatever the second one is', async () => {
    for (const second of ['application/json', 'text/plain']) {
      const answer = await rawCreate(open.gateway.url, ['Content-Type: application/json', `Content-Type: ${second}`]);
      assert.deepEqual(refusalIn(answer), { status: 415, code: 'unsupported_media_type' });
    }
  });

  it('is of a body without coding', async () => {
    for (const encoding of ['gzip', 'identity, gzip', 'br'])
      assertAcpError(await create({ 'content-encoding': encoding }), 415, 'unsupported_media_type');
    assert.equal((await create({ 'content-encoding': 'identity' })).status, 201);
  });
});

describe('the ids of a checkout call', () => {
  it('are the gateway’s own and the caller’s, each under its name', async () => {
    const answer = await create({ 'request-id': 'their id', 'x-request-id': 'trace-1' });
    assert.equal(answer.headers['request-id'], 'their id');
    assert.equal(answer.headers['x-request-id'], 'trace-1');
    const own = await create({ 'request-id': 'their id' });
    assert.match(String(own.headers['x-request-id']), /^acp_[0-9a-f-]{36}$/);
  });
  it('are echoed, cut at 128 characters', async () =>
    assert.equal((await create({ 'request-id': 'x'.repeat(200) })).headers['request-id'], 'x'.repeat(128)));
  it('are served without an echo where the caller’s is odd, or came twice', async () => {
    for (const id of [undefined, '', 'a\tb', 'clé']) {
      const answer = await create({ 'request-id': id });
      assert.equal(answer.status, 201);
      assert.equal(answer.headers['request-id'], undefined);
    }
    const answer = await rawCreate(open.gateway.url, ['Request-Id: a', 'Request-Id: b']);
    assert.match(answer, /^HTTP\/1\.1 201/);
    assert.doesNotMatch(answer, /\r\nrequest-id:/);
  });
  it('are echoed with every refusal', async () => {
    const answers = await Promise.all([
      askAcp(open.gateway.url, { path: '/nowhere', headers: { 'request-id': 'r1' } }),
      askAcp(open.gateway.url, { method: 'PUT', headers: { 'request-id': 'r1' } }),
      create({ 'request-id': 'r1', authorization: undefined }),
      create({ 'request-id': 'r1', origin: 'https://elsewhere.example' }),
      create({ 'request-id': 'r1' }, '{'),
    ]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [404, 405, 401, 403, 400],
    );
    for (const { headers } of answers) assert.equal(headers['request-id'], 'r1');
  });
});

const MAX = 262_144;
const TEXT = JSON.stringify(CART);

/** A valid create with white space up to so many bytes. */
const padded = (bytes: number): string => TEXT + ' '.repeat(bytes - TEXT.length);
/**
 * A valid create whose metadata has so many levels, those of the document and of `metadata` among
 * them.
 */
const nested = (levels: number): string =>
  `${TEXT.slice(0, -1)},"metadata":${'{"a":'.repeat(levels - 2)}{}${'}'.repeat(levels - 2)}}`;

describe('the body of a checkout call', () => {
  it('may have 262,144 bytes, and is too large with one more, also when its length is not declared', async () => {
    assert.equal((await create({}, padded(MAX))).status, 201);
    assertAcpError(await create({}, padded(MAX + 1)), 413, 'request_body_too_large');
    const chunks = [
      createHead(['Transfer-Encoding: chunked']),
      `${(MAX + 1).toString(16)}\r\n${padded(MAX + 1)}\r\n0\r\n\r\n`,
    ];
    assert.deepEqual(refusalIn(await exchange(open.gateway.url, chunks)), {
      status: 413,
      code: 'request_body_too_large',
    });
  });
  it('may be 64 levels deep, and is refused as JSON with more', async () => {
    assert.equal((await create({}, nested(64))).status, 201);
    for (const levels of [65, 5_000]) assertAcpError(await create({}, nested(levels)), 400, 'invalid_json');
  });

  const unreadable: readonly (readonly [string, string | Buffer])[] = [
    ['is empty', ''],
    ['is white space', '  '],
    ['breaks off', TEXT.slice(0, -1)],
    ['is followed by something', `${TEXT}x`],
    ['begins with a byte order mark', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(TEXT)])],
    ['is UTF-16', Buffer.from(TEXT, 'utf16le')],
    ['is Latin-1', Buffer.from(`${TEXT.slice(0, -1)},"locale":"é"}`, 'latin1')],
    ['has a member twice', `${TEXT.slice(0, -1)},"currency":"eur"}`],
    ['has a member twice, once in escapes', `${TEXT.slice(0, -1)},"currenc\\u0079":"eur"}`],
    ['has a lone surrogate', `${TEXT.slice(0, -1)},"locale":"\\ud800"}`],
    ['has a number that a double cannot hold', `${TEXT.slice(0, -1)},"metadata":{"n":9007199254740993}}`],
  ];
  it('is strict JSON', async () => {
    for (const [what, body] of unreadable) {
      const answer = await create({}, body);
      assert.equal(answer.status, 400, what);
      assertAcpError(answer, 400, 'invalid_json');
    }
  });

  it('is an object', async () => {
    for (const body of ['null', '[]', '"text"', '7'])
      assert.equal(assertAcpError(await create({}, body), 400, 'invalid_request_body')['param'], '$');
  });

  it('is refused with the path that does not match, and no value of it', async () => {
    const answer = await create(
      {},
      '{"line_items":[{"id":"secret-1","quantity":"secret-2"}],"currency":"usd","capabilities":{}}',
    );
    const document = assertAcpError(answer, 400, 'invalid_request_body');
    assert.equal(document['param'], '$.line_items[0].quantity');
    assert.doesNotMatch(answer.text, /secret/);
  });

  it('reaches the backend in its own bytes', async () => {
    const body = ' {"currency" : "us\\u0064", "line_items":[{"id":"item_1","unit_amount":1.0}],\n"capabilities":{}}  ';
    const arrived = open.backend.arrived();
    assert.equal((await create({}, body)).status, 201);
    assert.equal((await arrived).body.toString(), body);
  });

  it('gets no 100 Continue when it would be refused', async () => {
    const socket = await dial(open.gateway.url);
    const answer = received(socket);
    socket.write(createHead([`Content-Length: ${MAX + 1}`, 'Expect: 100-continue']));
    await new Promise((resolve) => socket.once('close', resolve));
    assert.equal(refusalIn(answer()).status, 413);
  });

  it('that breaks off leaves no claim behind', async () => {
    const socket = await dial(open.gateway.url);
    socket.write(
      `${createHead(['Idempotency-Key: broken-off', `Content-Length: ${TEXT.length}`])}${TEXT.slice(0, 10)}`,
    );
    socket.end();
    await new Promise((resolve) => socket.resume().once('close', resolve));
    const other = { ...CART, currency: 'eur' };
    const answer = await askAcp(open.gateway.url, { headers: { 'idempotency-key': 'broken-off' }, body: other });
    assert.equal(answer.status, 201);
  });
});

describe('a cancel', () => {
  const session = async (): Promise<string> => (JSON.parse((await create({}, TEXT)).text) as { id: string }).id;

  for (const [what, headers] of [
    ['without a body and without a content type', { 'content-type': undefined }],
    ['with a content type for nothing', {}],
  ] as const)
    it(`may come ${what}, and reaches the backend without either`, async () => {
      const path = `/checkout_sessions/${await session()}/cancel`;
      const arrived = open.backend.arrived({ operation: 'cancelCheckoutSession' });
      const answer = await askAcp(open.gateway.url, { path, headers, body: '' });
      assert.equal(answer.status, 200, answer.text);
      const call = await arrived;
      assert.equal(call.body.length, 0);
      assert.equal(call.headers['content-type'], undefined);
    });

  it('without a body is the same call as one with an empty object', async () => {
    const path = `/checkout_sessions/${await session()}/cancel`;
    const headers = { 'idempotency-key': `cancel ${path}` };
    assert.equal((await askAcp(open.gateway.url, { path, headers, body: '' })).status, 200);
    const again = await askAcp(open.gateway.url, { path, headers, body: '{ }' });
    assert.equal(again.headers['idempotent-replayed'], 'true');
  });

  it('with a body needs a content type', async () => {
    const path = `/checkout_sessions/${await session()}/cancel`;
    const headers = { 'content-type': undefined };
    assertAcpError(await askAcp(open.gateway.url, { path, headers, body: '{}' }), 415, 'unsupported_media_type');
    const chunked = [
      createHead(['Transfer-Encoding: chunked'])
        .replace('/acp/checkout_sessions ', `/acp${path} `)
        .replace(/Content-Type: .*\r\n/, ''),
      '2\r\n{}\r\n0\r\n\r\n',
    ];
    assert.equal(refusalIn(await exchange(open.gateway.url, chunked)).status, 415);
  });
});

describe('complete and update', () => {
  for (const path of ['/checkout_sessions/cs_1', '/checkout_sessions/cs_1/complete'])
    it(`need a body: ${path}`, async () => {
      const { message } = assertAcpError(await askAcp(open.gateway.url, { path, body: '' }), 400, 'invalid_json');
      assert.equal(message, 'The body is empty; it must be a JSON object.');
    });
});
