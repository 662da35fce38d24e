import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openGateway, Refusal, TOKEN } from '../../../src/operator/console/gateway.js';

const BASE = new URL('http://shop.example/below/');

/** A gateway that gives one answer, and the requests it got. */
function answering(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
  const asked: { readonly url: string; readonly init: RequestInit }[] = [];
  const ask = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    asked.push({ url: String(url), init });
    return new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers });
  };
  return { asked, gateway: openGateway('s3cret', { base: BASE, ask: ask as typeof fetch }) };
}

describe('what the page asks', () => {
  it('carries the token in the header of operator routes, and nowhere else', async () => {
    const { asked, gateway } = answering(200, { events: [], receipts: [], resources: [], store: {}, merchant: {} });
    await gateway.events({ limit: '5', cursor: 'evt_1-0' });
    await gateway.receipts({});
    await gateway.readiness();
    await gateway.merchant();
    await gateway.names();
    assert.deepEqual(
      asked.map(({ url, init }) => [url, new Headers(init.headers).get('authorization')]),
      [
        ['http://shop.example/below/api/events?limit=5&cursor=evt_1-0', 'Bearer s3cret'],
        ['http://shop.example/below/api/receipts', 'Bearer s3cret'],
        ['http://shop.example/below/ready', null],
        ['http://shop.example/below/.well-known/agent-commerce', null],
        ['http://shop.example/below/api/resources', null],
      ],
    );
    for (const { init } of asked)
      assert.deepEqual(
        [init.redirect, init.credentials, init.mode, init.referrerPolicy],
        ['error', 'omit', 'same-origin', 'no-referrer'],
      );
  });

  for (const { token, may } of [
    { token: 'a', may: true },
    { token: '!~'.repeat(256), may: true },
    { token: '', may: false },
    { token: 'a'.repeat(513), may: false },
    { token: 'two words', may: false },
    { token: 'grün', may: false },
    { token: 'a\nb', may: false },
  ])
    it(`a token ${JSON.stringify(token).slice(0, 16)} of ${token.length} ${may ? 'may' : 'may not'} be one`, () =>
      assert.equal(TOKEN.test(token), may));
});

describe('why there is no answer', () => {
  const limited = { status: 'error', code: 'RATE_LIMITED' };
  const WRONG_7 = /^Too many wrong tokens from here; wait 7 s\. The right one still works\.$/;
  const storage = { status: 'error', code: 'STORAGE_ERROR' };
  for (const { status, body = {}, headers = {}, kind, retryAfterS, words } of [
    { status: 401, kind: 'token', words: /rejected this token/ },
    { status: 404, kind: 'missing', words: /no operator token is configured/ },
    { status: 429, headers: { 'retry-after': '7' }, kind: 'busy', retryAfterS: 7, words: /limits requests/ },
    { status: 429, body: limited, headers: { 'retry-after': '7' }, kind: 'guesses', retryAfterS: 7, words: WRONG_7 },
    { status: 429, body: limited, kind: 'guesses', words: /wait a minute\. The right one still works/ },
    { status: 503, headers: { 'retry-after': '1' }, kind: 'busy', retryAfterS: 1, words: /busy or draining/ },
    { status: 503, body: storage, kind: 'store', words: /store is away/ },
    { status: 502, body: '<html>bad gateway</html>', kind: 'strange', words: /502/ },
    { status: 200, body: 'no JSON', kind: 'strange', words: /200/ },
    { status: 200, body: { receipts: [] }, kind: 'strange', words: /200/ },
    { status: 429, headers: { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }, kind: 'busy', words: /limits/ },
  ])
    it(`${status} ${JSON.stringify(body).slice(0, 30)} is "${kind}"`, async () => {
      await assert.rejects(answering(status, body, headers).gateway.events({}), (refusal) => {
        assert.ok(refusal instanceof Refusal);
        assert.deepEqual([refusal.kind, refusal.retryAfterS], [kind, retryAfterS]);
        assert.match(refusal.message, words);
        return true;
      });
    });

  it('429 of a route without a token is not one for wrong tokens', async () => {
    await assert.rejects(answering(429, limited).gateway.names(), { kind: 'busy' });
  });

  it('a connection that fails is "away"', async () => {
    const ask = () => Promise.reject(new TypeError('fetch failed'));
    const gateway = openGateway('t', { base: BASE, ask: ask as typeof fetch });
    await assert.rejects(gateway.events({}), (refusal) => refusal instanceof Refusal && refusal.kind === 'away');
  });

  it('/ready shows what fails with a 503 of its own; that of a proxy is "away"', async () => {
    const failing = { ready: false, store: { name: 'redis', status: 'fail' } };
    assert.deepEqual(await answering(503, failing).gateway.readiness(), failing);
    await assert.rejects(answering(503, {}).gateway.readiness(), { kind: 'away' });
  });
});
