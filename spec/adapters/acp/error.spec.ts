import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { asAcpError } from '../../../src/adapters/acp/error.ts';
import { GatewayError } from '../../../src/errors.ts';
import { assertEnvelope } from '../../e2e/ask.ts';
import { exchange, head } from '../../server/http/raw.ts';
import { askAcp, assertAcpError, rawCreate, refusalIn, sharedCheckoutTestbed, TOKEN } from './testbed.ts';

/** What the middleware that all adapters share answers to requests at the mount. */
describe('a checkout call that a shared middleware refuses', () => {
  const open = sharedCheckoutTestbed({
    overrides: {
      server: { allowedOrigins: ['https://app.example'], allowedHosts: ['shop.example'] },
      limits: { rate: { perSecond: 1, burst: 3 } },
    },
  });

  const host = 'shop.example';
  const ask = (headers: Record<string, string | undefined>, path?: string, method?: string) =>
    askAcp(open.gateway.url, {
      headers: { host, ...headers },
      ...(path === undefined ? {} : { path }),
      ...(method === undefined ? {} : { method }),
    });

  it('of a foreign origin is refused with an ACP error', async () => {
    assertAcpError(await ask({ origin: 'https://evil.example' }), 403, 'forbidden');
  });
  it('of a foreign host as well', async () => {
    assertAcpError(await ask({ host: 'evil.example' }), 403, 'forbidden');
  });
  it('of an allowed origin is served, and a page may ask beforehand', async () => {
    const preflight = await ask(
      { origin: 'https://app.example', 'access-control-request-method': 'POST' },
      '/checkout_sessions',
      'OPTIONS',
    );
    assert.equal(preflight.status, 204);
    for (const name of ['api-version', 'idempotency-key', 'request-id', 'authorization'])
      assert.ok(preflight.headers['access-control-allow-headers']?.includes(name), name);
  });
  it('ends everywhere below the mount, and nowhere beside it, with an Error document', async () => {
    for (const path of ['', '/', '/nowhere', '/checkout_sessions/a%2F%2e%2e', '/checkout_sessions/%zz', '/%2F'])
      assertAcpError(await ask({}, path), 404, 'not_found');
    for (const path of ['x', '%2Fcheckout_sessions']) assertEnvelope(await ask({}, path), 'NOT_FOUND');
  });
  it('of a path that a proxy might shorten is not found, unchanged', async () => {
    for (const path of [
      '/acp/checkout_sessions/%2e%2e',
      '/acp/checkout_sessions/a/../b',
      '/acp/../acp/checkout_sessions',
    ]) {
      const lines = [`POST ${path} HTTP/1.1`, `Host: ${host}`, 'Connection: close', 'Content-Length: 0'];
      assert.deepEqual(refusalIn(await exchange(open.gateway.url, [head(lines)])), { status: 404, code: 'not_found' });
    }
  });
  it('with a target of absolute form is found at its path', async () => {
    const lines = ['GET http://shop.example/acp/nowhere HTTP/1.1', `Host: ${host}`, 'Connection: close'];
    const answer = await exchange(open.gateway.url, [head(lines)]);
    assert.deepEqual(refusalIn(answer), { status: 404, code: 'not_found' });
    assert.match(answer, /\r\nx-request-id: acp_/);
  });
  it('whose framing can be read in two ways is refused before anything else', async () => {
    const lines = ['POST /acp/checkout_sessions HTTP/1.1', `Host: ${host}`, 'Transfer-Encoding: gzip, chunked'];
    assert.deepEqual(refusalIn(await exchange(open.gateway.url, [`${head(lines)}0\r\n\r\n`])), {
      status: 400,
      code: 'invalid_request',
    });
    const reading = ['GET /acp/checkout_sessions/cs_1 HTTP/1.1', `Host: ${host}`, 'Content-Length: 2'];
    assert.deepEqual(refusalIn(await exchange(open.gateway.url, [`${head(reading)}{}`])), {
      status: 400,
      code: 'invalid_request',
    });
  });
  it('repeats a header that the adapter does not judge itself, and is refused as everywhere', async () => {
    for (const [field, value] of Object.entries({
      Host: host,
      'Agent-Authorization': 'b25l',
      'Last-Event-Id': 'evt_1',
    })) {
      const twice = [`${field}: ${value}`, `${field}: ${value}`];
      const answer = await rawCreate(open.gateway.url, field === 'Host' ? twice : [`Host: ${host}`, ...twice]);
      assert.deepEqual(refusalIn(answer), { status: 400, code: 'invalid_request' });
    }
  });
  it('leaves the check of the framing as strict beside the mount as it was', async () => {
    for (const field of ['Authorization: Bearer one', 'Content-Type: application/json'])
      for (const path of ['/acpx', '/api/events', '/.well-known/acp.json', '/api/events?/acp/'])
        assert.deepEqual(
          refusalIn(await exchange(open.gateway.url, [head([`GET ${path} HTTP/1.1`, `Host: ${host}`, field, field])])),
          { status: 400, code: 'INPUT_INVALID' },
        );
  });
  it('comes too often: refused before its token is compared', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask({ authorization: `Bearer ${TOKEN}x` })));
    const limited = answers.filter(({ status }) => status === 429);
    assert.ok(limited.length > 0 && answers.some(({ status }) => status === 401));
    for (const answer of limited) {
      assertAcpError(answer, 429, 'rate_limited');
      assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/);
    }
  });
});

describe('what is thrown below the mount', () => {
  it('is always an Error document, and a bug reveals nothing of itself', () => {
    const codes = (thrown: unknown) => {
      const { status, document } = asAcpError(thrown);
      return [status, document['code'], document['message']];
    };
    assert.deepEqual(codes(new GatewayError('STORAGE_ERROR')), [
      503,
      'service_unavailable',
      'The service cannot do this now: repeat the same request in a moment.',
    ]);
    assert.deepEqual(codes(new GatewayError('INPUT_INVALID', { message: 'Ours.' })), [400, 'invalid_request', 'Ours.']);
    assert.deepEqual(codes(new URIError('secret')), [400, 'invalid_request', 'The request is not well-formed HTTP.']);
    const bug = [500, 'processing_error', 'The gateway failed on its own account.'];
    for (const thrown of [new Error('secret'), 'secret', undefined, new GatewayError('PAYMENT_REQUIRED')])
      assert.deepEqual(codes(thrown), bug);
  });
  it('keeps its headers and its cause', () => {
    const cause = new Error('why');
    const error = asAcpError(new GatewayError('RATE_LIMITED', { headers: { 'retry-after': '7' }, cause }));
    assert.equal(error.headers['retry-after'], '7');
    assert.equal(error.cause, cause);
  });
});
