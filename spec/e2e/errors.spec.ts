import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { OPERATOR_TOKEN } from '../support/gateway.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { ask, assertEnvelope, isEnvelope } from './ask.ts';
import { INVOKE, json, ROWS } from './refusals.ts';

describe('every failure is one envelope with the status of its code', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  for (const row of ROWS)
    it(`${row.code} ${row.status}: ${row.rule}`, async () => {
      const answer = await ask(testbed.gateway.url, row);
      assert.equal(answer.status, row.status, answer.text);
      const body = assertEnvelope(answer, row.code);
      if (row.details !== undefined) assert.deepEqual(body['details'], row.details);
      if (row.header !== undefined) assert.equal(answer.headers[row.header[0]], row.header[1]);
    });

  it('schema violations name their path, rule and nothing of the input', async () => {
    const answer = await ask(testbed.gateway.url, { path: INVOKE, body: json({ city: 7, secret: 'hunter2' }) });
    const { details } = JSON.parse(answer.text) as { details: { errors: { path: string; keyword: string }[] } };
    assert.ok(details.errors.some(({ path, keyword }) => path === '$.city' && keyword === 'type'));
    assert.ok(!answer.text.includes('hunter2'));
  });

  it('closed operator routes look exactly like no route', async () => {
    const closed = await openTestbed({ overrides: { server: { adminToken: undefined } } });
    try {
      const headers = { 'x-request-id': 'same', authorization: 'Bearer anything' };
      for (const method of ['GET', 'POST', 'OPTIONS', 'HEAD']) {
        const [route, none] = await Promise.all(
          ['/api/events', '/api/nowhere'].map((path) => ask(closed.gateway.url, { method, path, headers })),
        );
        const { date: _one, ...routeHeaders } = route?.headers ?? {};
        const { date: _other, ...noneHeaders } = none?.headers ?? {};
        assert.deepEqual([route?.status, route?.text, routeHeaders], [404, none?.text, noneHeaders]);
      }
    } finally {
      await closed.close();
    }
  });

  it('a legal X-Request-Id is taken, any other replaced', async () => {
    const ids = {
      'my-id:1.2_3': true,
      [`${'x'.repeat(64)}`]: true,
      [`${'x'.repeat(65)}`]: false,
      'a b': false,
      ü: false,
    };
    for (const [id, taken] of Object.entries(ids)) {
      const answer = await ask(testbed.gateway.url, {
        method: 'GET',
        path: '/health',
        headers: { 'x-request-id': encodeLatin(id) },
      });
      if (taken) assert.equal(answer.headers['x-request-id'], id);
      else assert.match(answer.headers['x-request-id'] as string, /^req_[0-9a-f-]{36}$/);
    }
  });

  it('an empty body is the empty input, with and without a content type', async () => {
    for (const headers of [{ 'content-type': 'application/json' }, {}]) {
      const answer = await ask(testbed.gateway.url, { path: '/api/resources/cities/invoke', headers });
      assert.equal(answer.status, 200, answer.text);
    }
  });

  it('HEAD answers where GET does, without a body', async () => {
    for (const path of ['/health', '/ready', '/api/resources', '/.well-known/agent-commerce']) {
      const answer = await ask(testbed.gateway.url, { method: 'HEAD', path, headers: {} });
      assert.deepEqual([answer.status, answer.text], [200, '']);
      assert.ok(Number(answer.headers['content-length']) > 0);
    }
  });

  it('requests that no parser can read still get the envelope', async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      const { hostname, port } = new URL(testbed.gateway.url);
      import('node:net').then(({ connect }) => {
        const socket = connect(Number(port), hostname, () => socket.write('GARBAGE\r\n\r\n'));
        let text = '';
        socket.on('data', (chunk) => {
          text += chunk;
        });
        socket.on('close', () => resolve(text));
        socket.on('error', reject);
      }, reject);
    });
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    assert.match(head, /^HTTP\/1\.1 400 /);
    assert.ok(isEnvelope(JSON.parse(body)), body);
  });
});

describe('operator tokens and the host list', () => {
  it('the next operator token works beside the present one', async () => {
    const testbed = await openTestbed({ overrides: { server: { adminTokenNext: 'the-next-token-of-the-tests' } } });
    try {
      for (const [token, status] of [
        [OPERATOR_TOKEN, 200],
        ['the-next-token-of-the-tests', 200],
        ['neither', 401],
      ] as const) {
        const headers = { authorization: `Bearer ${token}` };
        assert.equal((await ask(testbed.gateway.url, { method: 'GET', path: '/api/events', headers })).status, status);
      }
      const many = await ask(testbed.gateway.url, {
        method: 'GET',
        path: `/api/events?limit=${'9'.repeat(30)}`,
        headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
      });
      assert.equal(many.status, 200, 'a limit beyond the largest is clamped');
    } finally {
      await testbed.close();
    }
  });

  it('a host list refuses other hosts, but not probes', async () => {
    const testbed = await openTestbed({ overrides: { server: { allowedHosts: ['shop.example'] } } });
    try {
      const get = (path: string, host: string) => ask(testbed.gateway.url, { method: 'GET', path, headers: { host } });
      assert.equal((await get('/api/resources', 'shop.example')).status, 200);
      assert.equal((await get('/api/resources', 'SHOP.example')).status, 200);
      const other = await get('/api/resources', 'evil.example');
      assert.equal(other.status, 403);
      assertEnvelope(other, 'FORBIDDEN');
      assert.equal((await get('/health', '10.0.0.7:8402')).status, 200);
    } finally {
      await testbed.close();
    }
  });
});

function encodeLatin(id: string): string {
  return Buffer.from(id, 'utf8').toString('latin1');
}
