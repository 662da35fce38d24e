import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rawCreate, refusalIn } from './raw.ts';
import { askAcp, assertAcpError, type Headers, sharedCheckoutTestbed } from './testbed.ts';

const open = sharedCheckoutTestbed();

const create = (headers: Headers, body?: string) =>
  askAcp(open.gateway.url, { headers, ...(body === undefined ? {} : { body }) });

describe('the version of a checkout call', () => {
  for (const version of [undefined, ''])
    it(`is missing as ${JSON.stringify(version)}`, async () => {
      const document = assertAcpError(await create({ 'api-version': version }), 400, 'missing_api_version');
      assert.deepEqual(document['supported_versions'], ['2026-04-17']);
    });
  for (const version of ['latest', '2026-01-30', '2026-04-18', 'v2026-04-17', '2026-04-17, 2026-04-17'])
    it(`is not served as ${version}`, async () => {
      const document = assertAcpError(await create({ 'api-version': version }), 400, 'unsupported_api_version');
      assert.deepEqual(document['supported_versions'], ['2026-04-17']);
    });
  it('comes once', async () =>
    assert.deepEqual(
      refusalIn(await rawCreate(open.gateway.url, ['API-Version: 2026-04-17', 'API-Version: 2026-04-17'])),
      {
        status: 400,
        code: 'unsupported_api_version',
      },
    ));
  it('is needed for reading as well', async () =>
    void assertAcpError(
      await askAcp(open.gateway.url, {
        method: 'GET',
        path: '/checkout_sessions/cs_1',
        headers: { 'api-version': undefined },
      }),
      400,
      'missing_api_version',
    ));
});

describe('the key of a checkout call', () => {
  for (const key of ['k', 'a b', `${'x'.repeat(254)}~`])
    it(`may be ${key.slice(0, 20)} of ${key.length} characters, and is echoed`, async () => {
      const answer = await create({ 'idempotency-key': key });
      assert.equal(answer.status, 201);
      assert.equal(answer.headers['idempotency-key'], key);
    });
  for (const key of [undefined, ''])
    it(`is required, and missing as ${JSON.stringify(key)}`, async () =>
      void assertAcpError(await create({ 'idempotency-key': key }), 400, 'idempotency_key_required'));
  for (const key of ['x'.repeat(256), 'a\tb', 'clé', '\u00a0a\u00a0', '\u00a0'])
    it(`must not be ${JSON.stringify(key).slice(0, 20)} of ${key.length} characters`, async () => {
      const answer = await create({ 'idempotency-key': key });
      assertAcpError(answer, 400, 'idempotency_key_invalid');
      assert.equal(answer.headers['idempotency-key'], undefined);
    });
  it('is trimmed: the same key with spaces around it is the same key', async () => {
    const [first, second] = [
      await rawCreate(open.gateway.url, ['Idempotency-Key:   padded  ']),
      await rawCreate(open.gateway.url, ['Idempotency-Key: padded']),
    ];
    assert.match(first, /^HTTP\/1\.1 201[\s\S]*\r\nidempotency-key: padded\r\n/);
    assert.match(second, /\r\nidempotent-replayed: true\r\n/);
  });
  it('comes once', async () =>
    assert.deepEqual(refusalIn(await rawCreate(open.gateway.url, ['Idempotency-Key: a', 'Idempotency-Key: a'])), {
      status: 400,
      code: 'idempotency_key_invalid',
    }));
  it('is echoed with a refusal as well', async () => {
    const answer = await create({ 'idempotency-key': 'echo-me' }, '{}');
    assertAcpError(answer, 400, 'invalid_request_body');
    assert.equal(answer.headers['idempotency-key'], 'echo-me');
  });
  it('is neither read nor echoed when a session is read', async () => {
    const { id } = JSON.parse((await create({})).text) as { id: string };
    const read = (key: string) =>
      askAcp(open.gateway.url, {
        method: 'GET',
        path: `/checkout_sessions/${id}`,
        headers: { 'idempotency-key': key },
      });
    for (const key of ['k', 'x'.repeat(300)]) {
      const answer = await read(key);
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
  for (const type of served)
    it(`may be ${type}`, async () => assert.equal((await create({ 'content-type': type })).status, 201));

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
  for (const type of refused)
    it(`must not be ${type}`, async () =>
      void assertAcpError(await create({ 'content-type': type }), 415, 'unsupported_media_type'));

  it('comes once, whatever the second one is', async () => {
    for (const second of ['application/json', 'text/plain']) {
      const answer = await rawCreate(open.gateway.url, ['Content-Type: application/json', `Content-Type: ${second}`]);
      assert.deepEqual(refusalIn(answer), { status: 415, code: 'unsupported_media_type' });
    }
  });

  for (const encoding of ['gzip', 'identity, gzip', 'br'])
    it(`must not be coded as ${encoding}`, async () =>
      void assertAcpError(await create({ 'content-encoding': encoding }), 415, 'unsupported_media_type'));
  it('may be coded as identity', async () =>
    assert.equal((await create({ 'content-encoding': 'identity' })).status, 201));
});

describe('the ids of a checkout call', () => {
  it('are the gateway’s own and the caller’s, each under its name', async () => {
    const answer = await create({ 'request-id': 'their id', 'x-request-id': 'trace-1' });
    assert.equal(answer.headers['request-id'], 'their id');
    assert.equal(answer.headers['x-request-id'], 'trace-1');
    const own = await create({ 'request-id': 'their id' });
    assert.match(String(own.headers['x-request-id']), /^acp_[0-9a-f-]{36}$/);
  });
  it('cuts the echo at 128 characters', async () =>
    assert.equal((await create({ 'request-id': 'x'.repeat(200) })).headers['request-id'], 'x'.repeat(128)));
  for (const id of [undefined, '', 'a\tb', 'clé'])
    it(`does not echo ${JSON.stringify(id)}, and serves the call`, async () => {
      const answer = await create({ 'request-id': id });
      assert.equal(answer.status, 201);
      assert.equal(answer.headers['request-id'], undefined);
    });
  it('does not echo one that came twice', async () => {
    const answer = await rawCreate(open.gateway.url, ['Request-Id: a', 'Request-Id: b']);
    assert.match(answer, /^HTTP\/1\.1 201/);
    assert.doesNotMatch(answer, /\r\nrequest-id:/);
  });
  it('echoes it with every refusal', async () => {
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
