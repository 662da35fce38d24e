import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBuyer } from '../support/buyer.ts';
import { DOCUMENT_HEADERS } from '../support/sample-backend.ts';
import { type Sent, send, sharedRoutes } from './world.ts';

const REPORT = '/reports/Berlin';
/** What a reader has that knows some answer already. */
const CONDITIONS = { 'if-none-match': '*', 'if-modified-since': 'Tue, 01 Sep 2099 00:00:00 GMT', range: 'bytes=0-1' };
const PAGE = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

interface Envelope {
  readonly resource: { readonly url: string };
  readonly accepts: readonly object[];
}
const decoded = (header: unknown): Envelope => JSON.parse(Buffer.from(String(header), 'base64').toString()) as Envelope;
/** The facilitator asks for no money, so the buyer needs none. */
const noToken = { mint: async () => undefined, balanceOf: async () => 0n };

describe('a paid address', () => {
  const world = sharedRoutes();
  const ask = (method: string, path = REPORT, headers: Sent['headers'] = {}) =>
    send(world().agents, method, path, { headers });
  const publicBaseUrl = () => world().config.merchant.publicBaseUrl;
  const proofOf = async (offer: unknown): Promise<string> => (await createBuyer(noToken, 0n)).pay(decoded(offer));

  it('has the offer in the body of its 402 and in PAYMENT-REQUIRED, the same in both', async () => {
    const { headers, text } = await ask('GET').expect(402);
    const body = JSON.parse(text) as { readonly resourceId: string; readonly payment: { readonly envelope: Envelope } };
    assert.equal(body.resourceId, 'market_report');
    assert.deepEqual(decoded(headers['payment-required']), body.payment.envelope);
  });

  it('names itself by its public URL without a query, whatever host is asked for', async () => {
    const headers = { host: 'evil.example', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'gopher' };
    for (const accept of ['*/*', 'text/html']) {
      const answer = await ask('GET', '/reports/s%c3%a3o%20paulo?x=1', { ...headers, accept }).expect(402);
      const { url } = decoded(answer.headers['payment-required']).resource;
      assert.equal(url, `${publicBaseUrl()}/reports/s%C3%A3o%20paulo`);
      assert.doesNotMatch(answer.text, /evil|gopher/);
    }
  });

  it('is a page without script to a browser, with the offer in its header', async () => {
    const { headers, text } = await ask('GET', REPORT, PAGE).expect(402);
    assert.partialDeepStrictEqual(headers, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      vary: 'Accept',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    });
    assert.match(String(headers['content-security-policy']), /^default-src 'none'; /);
    assert.deepEqual([headers['etag'], headers['last-modified']], [undefined, undefined]);
    assert.equal(decoded(headers['payment-required']).accepts.length, 1);
    assert.match(text, /^<!doctype html>/);
    assert.doesNotMatch(text, /<script/i);
    assert.ok(text.includes(`${publicBaseUrl()}${REPORT}`));
  });

  for (const accept of ['application/json', 'text/html, application/json', 'text/html;q=0', '*/*', 'image/png'])
    it(`is JSON to a program that accepts ${accept}`, async () => {
      const { headers } = await ask('GET', REPORT, { accept }).expect(402);
      assert.equal(headers['content-type'], 'application/json; charset=utf-8');
      assert.equal(headers['vary'], 'Accept');
    });

  it('says the same to a HEAD, to a program and to a browser', async () => {
    for (const more of [{}, PAGE]) {
      const [get, head] = [await ask('GET', REPORT, more).expect(402), await ask('HEAD', REPORT, more).expect(402)];
      assert.equal(head.text, undefined);
      for (const name of ['content-type', 'cache-control', 'vary', 'content-security-policy'])
        assert.equal(head.headers[name], get.headers[name], name);
      const { accepts } = decoded(head.headers['payment-required']);
      assert.equal(accepts.length, 1);
    }
  });

  it('asks for payment whatever its reader has already', async () => {
    for (const method of ['GET', 'HEAD']) {
      const { headers } = await ask(method, REPORT, CONDITIONS).expect(402);
      assert.deepEqual([headers['etag'], headers['content-range']], [undefined, undefined]);
    }
  });

  it('is bought by a GET, whole and kept by no cache; by a HEAD with the same proof it is not', async () => {
    const { headers: asked } = await ask('GET').expect(402);
    const proof = await proofOf(asked['payment-required']);
    world().backend.forget();
    const head = await ask('HEAD', REPORT, { 'payment-signature': proof }).expect(402);
    assert.equal(head.headers['payment-response'], undefined);
    assert.deepEqual(world().backend.requests, []);
    const { headers, text } = await ask('GET', REPORT, { ...CONDITIONS, 'payment-signature': proof }).expect(200);
    assert.equal((JSON.parse(text) as { readonly city: string }).city, 'Berlin');
    assert.partialDeepStrictEqual(headers, { 'cache-control': 'private, no-store', 'accept-ranges': 'none' });
    assert.deepEqual(
      world().backend.requests.map(({ method, url }) => `${method} ${url}`),
      [`GET ${REPORT}`],
    );
    for (const name of Object.keys(CONDITIONS))
      assert.equal(world().backend.requests[0]?.headers[name], undefined, name);
    const told = JSON.parse(Buffer.from(String(headers['payment-response']), 'base64').toString()) as object;
    assert.partialDeepStrictEqual(told, { success: true, amount: '0.01' });
  });

  it('with an illegible payment has a new offer as JSON, also for what accepts a page', async () => {
    const { headers, text } = await ask('GET', REPORT, { ...PAGE, 'payment-signature': 'bm90aGluZw==' }).expect(402);
    assert.equal(headers['content-type'], 'application/json; charset=utf-8');
    assert.equal((JSON.parse(text) as { readonly error: { readonly code: string } }).error.code, 'PAYMENT_INVALID');
  });
});

describe('a free address', () => {
  const world = sharedRoutes();
  const ask = (method: string, headers: Sent['headers'] = {}) =>
    send(world().agents, method, '/document', { headers }).expect(({ headers: got }) =>
      assert.partialDeepStrictEqual(got, DOCUMENT_HEADERS),
    );

  for (const [what, headers, status, range, text] of [
    ['in part to a Range', { range: 'bytes=2-4' }, 206, 'bytes 2-4/10', '234'],
    ['416 to a Range outside', { range: 'bytes=20-21' }, 416, 'bytes */10', ''],
    ['412 to an If-Match of another', { 'if-match': '"other"' }, 412, undefined, ''],
    ['whole to an If-Match of its own', { 'if-match': DOCUMENT_HEADERS.etag }, 200, undefined, '0123456789'],
    ['304 to an If-None-Match of its own', { 'if-none-match': DOCUMENT_HEADERS.etag }, 304, undefined, ''],
  ] as const)
    it(`is ${what}`, async () => {
      const answer = await ask('GET', headers).expect(status);
      assert.deepEqual([answer.headers['content-range'], answer.text], [range, text]);
    });

  it('has the head of the whole answer for a HEAD with a Range, and is 304 to one that has it', async () => {
    const { headers } = await ask('HEAD', { range: 'bytes=2-4' }).expect(200);
    assert.deepEqual([headers['content-length'], headers['content-range']], ['10', undefined]);
    await ask('HEAD', { 'if-none-match': DOCUMENT_HEADERS.etag }).expect(304);
  });

  it('ignores a payment, and says nothing of payments', async () => {
    const { headers } = await ask('GET', { 'payment-signature': 'bm90aGluZw==' }).expect(200);
    assert.deepEqual([headers['payment-response'], headers['payment-required']], [undefined, undefined]);
  });

  it('is no page to a browser: what the backend answers is relayed', async () => {
    const { headers } = await ask('GET', PAGE).expect(200);
    assert.deepEqual([headers['content-type'], headers['vary']], ['text/plain', undefined]);
  });

  it('takes a JSON body, sends its bytes to the backend, and none is the empty input', async () => {
    const headers = { 'content-type': 'application/json' };
    const body = '{ "said": "Grüße", "ten": 1e1 }';
    await send(world().agents, 'POST', '/echo', { headers, body }).expect(200, body);
    await send(world().agents, 'POST', '/echo').expect(200, '{}');
  });
});

const LISTED = 'https://console.example';

describe('an address whose backend reads headers of the caller', () => {
  const world = sharedRoutes({
    backend: { originHeaders: ['accept', 'authorization', 'cookie'] },
    server: { allowedOrigins: [LISTED] },
  });
  const THEIRS = { accept: 'text/plain', authorization: 'Bearer theirs', cookie: 'a=b' };

  it('free: sends them to the backend, and tells caches that the answer depends on them', async () => {
    world().backend.forget();
    const { headers } = await send(world().agents, 'GET', '/document', { headers: THEIRS }).expect(200);
    assert.equal(headers['vary'], 'Origin, accept, authorization, cookie');
    assert.partialDeepStrictEqual(world().backend.requests[0]?.headers, THEIRS);
  });

  it('lets pages ask with them, but for the cookie, which they never send', async () => {
    const headers = { origin: LISTED, 'access-control-request-method': 'GET' };
    const answer = await send(world().agents, 'OPTIONS', REPORT, { headers }).expect(204);
    const allowed = String(answer.headers['access-control-allow-headers']).split(', ');
    assert.deepEqual(
      Object.keys(THEIRS).map((name) => allowed.includes(name)),
      [true, true, false],
    );
    assert.equal(answer.headers['access-control-allow-credentials'], undefined);
  });
});
