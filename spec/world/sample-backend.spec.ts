import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { after, before, beforeEach, describe, it } from 'node:test';
import { ARCHIVE, type SampleBackend, startSampleBackend } from '../support/sample-backend.ts';

describe('the sample merchant', () => {
  let backend: SampleBackend;
  before(async () => {
    backend = await startSampleBackend();
  });
  after(() => backend.stop());
  beforeEach(() => backend.forget());

  const get = (path: string, init: RequestInit = {}) => fetch(`${backend.url}${path}`, { redirect: 'manual', ...init });

  const answers: readonly (readonly [path: string, status: number, type: string | null, body: string | undefined])[] = [
    [
      '/reports/S%C3%A3o%20Paulo',
      200,
      'application/json',
      '{"city":"São Paulo","currency":"EUR","price":"12.50","volume":340}',
    ],
    ['/prices.csv', 200, 'text/csv; charset=utf-8', 'city,price\r\nBerlin,12.50\r\nSão Paulo,9.90\r\n'],
    ['/nothing', 204, null, ''],
    ['/slow?chunks=2&everyMs=1', 200, 'text/plain', '000000000\n000000001\n'],
    ['/redirect', 302, null, ''],
    ['/fail/402', 402, 'application/json', undefined],
    ['/fail/404', 404, 'application/json', undefined],
    ['/fail/500', 500, 'application/json', undefined],
    ['/fail/503', 503, 'application/json', undefined],
    ['/no/such/path', 404, 'application/json', undefined],
  ];
  for (const [path, status, type, body] of answers) {
    it(`answers GET ${path} with ${status}`, async () => {
      const response = await get(path);
      assert.equal(response.status, status);
      assert.equal(response.headers.get('content-type'), type);
      const text = await response.text();
      if (body !== undefined) assert.equal(text, body);
    });
  }

  it('serves the same 5 MiB archive, with every byte value in it', async () => {
    const bytes = Buffer.from(await (await get('/archive.bin')).arrayBuffer());
    assert.equal(bytes.length, 5 * 1024 * 1024);
    assert.equal(createHash('sha256').update(bytes).digest('hex'), ARCHIVE.sha256);
    assert.equal(new Set(bytes).size, 256);
  });

  it('states the language of a German answer', async () => {
    assert.equal((await get('/greeting')).headers.get('content-language'), 'de');
  });

  it('declares a length or not, as asked', async () => {
    assert.equal((await get('/bytes?size=1000')).headers.get('content-length'), '1000');
    const undeclared = await get('/bytes?size=1000&undeclared=true');
    assert.equal(undeclared.headers.get('content-length'), null);
    assert.equal((await undeclared.arrayBuffer()).byteLength, 1_000);
  });

  it('echoes exactly the bytes it got and records them', async () => {
    const body = Buffer.from([0x7b, 0x00, 0xff, 0x0a, 0x7d]);
    const headers = { 'content-type': 'application/x-odd', 'idempotency-key': 'pay_1' };
    const response = await get('/echo', { method: 'POST', body, headers });
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), body);
    assert.equal(response.headers.get('content-type'), 'application/x-odd');
    assert.deepEqual(
      backend.requests.map(({ method, url, body: received, idempotencyKey }) => [
        method,
        url,
        received,
        idempotencyKey,
      ]),
      [['POST', '/echo', body, 'pay_1']],
    );
  });

  it('shows the raw headers, repeated ones and their spelling included', async () => {
    const { port } = new URL(backend.url);
    const text = await new Promise<string>((resolve, reject) => {
      const sent = httpRequest({ port, path: '/echo/headers', headers: ['Host', 'x', 'X-Two', 'a', 'x-two', 'b'] });
      sent.once('error', reject);
      sent.once('response', (response) => response.setEncoding('utf8').once('data', resolve));
      sent.end();
    });
    assert.deepEqual((JSON.parse(text) as { rawHeaders: string[] }).rawHeaders.slice(2, 6), [
      'X-Two',
      'a',
      'x-two',
      'b',
    ]);
  });

  it('counts executions by idempotency key, and fails so often for each key', async () => {
    const call = async (key: string) => (await get('/flaky/2', { headers: { 'idempotency-key': key } })).status;
    assert.deepEqual([await call('a'), await call('a'), await call('b'), await call('a')], [500, 500, 500, 200]);
    assert.deepEqual([backend.executions('a'), backend.executions('b'), backend.executions('c')], [3, 1, 0]);
  });

  for (const path of ['/reset', '/broken']) {
    it(`breaks the connection on ${path}`, async () => {
      await assert.rejects(async () => (await get(path)).text());
      assert.equal(backend.requests.length, 1);
    });
  }

  it('never answers on /silent, and records the request', async () => {
    const leave = new AbortController();
    const arrived = backend.nextRequest('/silent');
    const call = get('/silent', { signal: leave.signal });
    assert.equal((await arrived).method, 'GET');
    leave.abort();
    await assert.rejects(call, { name: 'AbortError' });
  });

  it('holds an answer until it is released', async () => {
    backend.hold();
    let answered = false;
    const arrived = backend.nextRequest('/held');
    const call = get('/held').then((response) => {
      answered = true;
      return response.status;
    });
    await arrived;
    assert.equal((await get('/cities')).status, 200);
    assert.equal(answered, false);
    backend.release();
    assert.equal(await call, 200);
  });
});
