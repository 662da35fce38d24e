import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import type { Response } from 'supertest';
import { CURRENCY, NO_CHAIN } from '../support/config.ts';
import { sampleResources } from '../support/resources.ts';
import { envelope, type Sent, send, sharedRoutes } from './world.ts';

/** The headers of Chromium when a person opens an address. */
const PERSON = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8' };
/** The headers of a program that reads pages as well. */
const PROGRAM = { accept: 'text/html, application/json;q=0.1' };
const TEXT_TYPE = { 'content-type': 'text/plain' };
const JSON_TYPE = { 'content-type': 'application/json' };
const REPORT = '/api/resources/market_report/invoke';
const IN_PLACE = '/reports/Berlin';
const BERLIN = { body: '{"city":"Berlin"}' };
const NAME = `<script>alert("1")</script> & 'more'`;
const REPORTS = { market_report: { name: NAME } };

/** The offer without the token of its buyer. */
const offerOf = ({ headers }: Response): string =>
  Buffer.from(String(headers['payment-required']), 'base64')
    .toString()
    .replace(/"token": *"[^"]+"/, '');

const PAGE = {
  ...{ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', vary: 'Accept' },
  ...{ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' },
};

/** A page that runs nothing and loads nothing, and that no cache keeps. */
function assertPage({ headers, text }: Response): void {
  assert.partialDeepStrictEqual(headers, PAGE);
  assert.equal(headers['etag'], undefined);
  const style = /<style>(.*?)<\/style>/s.exec(text)?.[1] ?? '';
  const hash = createHash('sha256').update(style).digest('base64');
  assert.ok(headers['content-security-policy']?.startsWith(`default-src 'none'; style-src 'sha256-${hash}';`));
  assert.doesNotMatch(text, /<script|<b>|<img|<iframe|<form|onerror|style=|javascript:/i);
}

const world = sharedRoutes({ resources: REPORTS });
const ask = (method: string, path = REPORT, sent: Sent = {}) => send(world().agents, method, path, sent);

describe('for a person, an address of something that has a price', () => {
  it('answers 402 as a page, with the headers of the JSON to the same request', async () => {
    for (const [method, path, sent] of [
      ['GET', REPORT, {}],
      ['POST', REPORT, {}],
      ['POST', REPORT, BERLIN],
      ['GET', IN_PLACE, {}],
    ] as const) {
      const page = await ask(method, path, { ...sent, headers: { ...JSON_TYPE, ...PERSON } }).expect(402);
      const json = await ask(method, path, { ...sent, headers: JSON_TYPE }).expect(402);
      assertPage(page);
      assert.equal(offerOf(page), offerOf(json));
      for (const name of Object.keys(json.headers)) assert.ok(name in page.headers, name);
      assert.equal(page.headers['allow'], json.headers['allow']);
    }
  });

  for (const [path, called] of Object.entries({
    [REPORT]: `${REPORT}&#39;, {\n  method: &#39;POST&#39;,`,
    [IN_PLACE]: `${IN_PLACE}&#39;);`,
    [`/reports/'"<b>&x?"><script>`]: '/reports/%27%22%3Cb%3E&amp;x',
  }))
    it(`tells name, price, network, payee, how a program pays, and where all is listed: ${path}`, async () => {
      const page = await ask('GET', path, { headers: PERSON }).expect(402);
      assertPage(page);
      const { merchant, x402 } = world().config;
      for (const fact of [
        '<h1>&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;more&#39;</h1>',
        ...[`0.01 ${CURRENCY}`, `eip155:${NO_CHAIN.chainId}`, x402?.payTo ?? '', 'PAYMENT-REQUIRED'],
        ...[`<a href="${merchant.publicBaseUrl}/llms.txt">`, `await pay(&#39;${merchant.publicBaseUrl}${called}`],
      ])
        assert.ok(page.text.includes(fact), fact);
    });

  it('answers HEAD with the head of GET', async () => {
    for (const path of [REPORT, IN_PLACE]) {
      const headers = PERSON;
      const [get, head] = [await ask('GET', path, { headers }), await ask('HEAD', path, { headers }).expect(402)];
      assert.equal(head.text, undefined);
      assert.deepEqual(Object.keys(head.headers), Object.keys(get.headers));
      for (const name of ['content-length', 'content-type', 'vary', 'cache-control'])
        assert.equal(head.headers[name], get.headers[name]);
    }
  });

  const FAULTS: readonly (readonly [title: string, method: string, path: string, Sent, status: number, string])[] = [
    ['an unknown resource', 'POST', '/api/resources/nowhere/invoke', {}, 404, 'RESOURCE_NOT_FOUND'],
    ['the price of an unknown resource', 'GET', '/api/resources/nowhere/invoke', {}, 405, 'METHOD_NOT_ALLOWED'],
    ['an invalid input', 'POST', REPORT, { headers: JSON_TYPE, body: '{"city":1}' }, 400, 'INPUT_INVALID'],
    ['a form', 'POST', REPORT, { headers: TEXT_TYPE, body: 'city=x' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['a precondition in place', 'GET', IN_PLACE, { headers: { 'if-match': '*' } }, 400, 'INPUT_INVALID'],
  ];
  for (const [title, method, path, sent, status, code] of FAULTS)
    it(`answers ${title} with ${status} as a page, and a program with the envelope`, async () => {
      const page = await ask(method, path, { ...sent, headers: { ...sent.headers, ...PERSON } }).expect(status);
      assertPage(page);
      assert.ok(page.text.includes(`<h1>${status}</h1>`) && page.text.includes(`${code}, request `), page.text);
      assert.ok(page.text.includes(String(page.headers['x-request-id'])));
      const json = await ask(method, path, { ...sent, headers: { ...sent.headers, ...PROGRAM } }).expect(status);
      envelope(code)(json);
      assert.deepEqual([json.headers['vary'], json.headers['allow']], ['Accept', page.headers['allow']]);
    });

  it('answers a program in JSON: one that accepts it as well, and one that brings a proof', async () => {
    for (const headers of [PROGRAM, { ...PERSON, 'payment-signature': 'bm90aGluZw==' }])
      for (const [method, path, sent] of [
        ['POST', REPORT, BERLIN],
        ['GET', IN_PLACE, {}],
      ] as const) {
        const { headers: got } = await ask(method, path, { ...sent, headers: { ...JSON_TYPE, ...headers } }).expect(
          402,
        );
        assert.partialDeepStrictEqual(got, { 'content-type': 'application/json; charset=utf-8', vary: 'Accept' });
        assert.equal(got['content-security-policy'], undefined);
      }
    envelope('METHOD_NOT_ALLOWED')(await ask('GET', REPORT, { headers: { ...PERSON, 'payment-signature': 'e30=' } }));
  });
});

describe('the head of a page', () => {
  const report = sampleResources(CURRENCY)['market_report'];
  const lengths = Array.from({ length: 40 }, (_, place) => 1_501 + 10 * place);
  const resources = Object.fromEntries(
    lengths.map((length) => [`r${length}`, { ...report, description: 'x'.repeat(length) }]),
  );
  const world = sharedRoutes({ resources });

  it('stays within server.maxHeadBytes: an offer that does not fit beside it is JSON', async () => {
    const types = new Set<unknown>();
    for (const length of lengths) {
      const path = `/api/resources/r${length}/invoke`;
      const { headers } = await send(world().agents, 'GET', path, { headers: PERSON }).expect(402);
      const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      const bytes = `HTTP/1.1 402 Payment Required\r\n${fields.join('')}\r\n`.length;
      assert.ok(bytes <= world().config.server.maxHeadBytes, `${length}: ${bytes}`);
      types.add(headers['content-type']);
    }
    assert.equal(types.size, 2);
  });
});
