import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { CURRENCY } from '../support/config.ts';
import { callInPlace, soldInPlace } from '../support/in-place.ts';
import { DOCUMENT_HEADERS } from '../support/sample-backend.ts';
import { openTestbed, type Testbed } from '../support/testbed.ts';
import { type Answered, ask, assertEnvelope } from './ask.ts';

const BERLIN = { city: 'Berlin' };

describe('a free resource in place', () => {
  let testbed: Testbed;
  const DOCUMENT = {
    name: 'Document',
    backend: { method: 'GET', path: '/document' },
    pricing: { type: 'free' },
    expose: ['origin'],
  };
  before(async () => {
    const server = { allowedOrigins: ['https://page.example'] };
    testbed = await openTestbed({ overrides: { resources: { document: DOCUMENT }, server } });
  });
  after(() => testbed?.close());
  const get = (headers: Readonly<Record<string, string>>, method = 'GET'): Promise<Answered> =>
    ask(testbed.gateway.url, { method, path: '/document', headers });

  for (const [what, headers, status, text, range] of [
    ['whole', {}, 200, '0123456789', undefined],
    ['unchanged', { 'if-none-match': DOCUMENT_HEADERS.etag }, 304, '', undefined],
    ['in part', { range: 'bytes=2-4' }, 206, '234', 'bytes 2-4/10'],
    ['outside', { range: 'bytes=20-21' }, 416, '', 'bytes */10'],
    ['changed', { 'if-match': '"2"' }, 412, '', undefined],
  ] as const)
    it(`${what}: ${status}`, async () => {
      const answer = await get(headers);
      assert.deepEqual([answer.status, answer.text, answer.headers['content-range']], [status, text, range]);
      assert.partialDeepStrictEqual(answer.headers, DOCUMENT_HEADERS);
    });

  it('HEAD: the head of the whole answer', async () => {
    const answer = await get({ range: 'bytes=2-4' }, 'HEAD');
    assert.deepEqual([answer.status, answer.text, answer.headers['content-length']], [200, '', '10']);
  });

  it('shows the payment headers to pages that are listed, and takes their preflights', async () => {
    const page = { origin: 'https://page.example' };
    const { headers } = await get(page);
    assert.equal(headers['access-control-allow-origin'], page.origin);
    assert.match(String(headers['access-control-expose-headers']), /payment-required, payment-response/);
    const preflight = await get({ ...page, 'access-control-request-method': 'GET' }, 'OPTIONS');
    assert.deepEqual(
      [preflight.status, preflight.headers['access-control-allow-methods']],
      [204, 'GET, HEAD, OPTIONS'],
    );
    assert.equal((await get({ origin: 'https://evil.test' })).status, 403);
  });
});

describe('a resource that is sold in place, where the rest passes', () => {
  let testbed: Testbed;
  before(async () => {
    const overrides = { backend: { passthrough: { enabled: true } }, resources: soldInPlace(CURRENCY) };
    testbed = await openTestbed({ overrides });
  });
  after(() => testbed.close());

  it('is refused with its reason in another spelling', async () => {
    for (const [path, reason] of [
      ['/Reports/Berlin', 'path_spelling'],
      ['/reports/Berlin/', 'path_spelling'],
      ['//reports/Berlin', 'ambiguous_path'],
      ['/reports/a%2fb', 'ambiguous_path'],
    ] as const) {
      const answer = await ask(testbed.gateway.url, { method: 'GET', path, headers: {} });
      assert.deepEqual(assertEnvelope(answer, 'INPUT_INVALID')['details'], { reason }, path);
    }
    assert.equal((await callInPlace(testbed.gateway, 'market_report', BERLIN)).status, 402);
    assert.equal(testbed.backend.requests.length, 0);
  });
});

describe('the rate limit of calls in place', () => {
  let testbed: Testbed;
  before(async () => {
    const overrides = { limits: { rate: { perSecond: 1, burst: 1 } }, resources: soldInPlace(CURRENCY) };
    testbed = await openTestbed({ overrides });
  });
  after(() => testbed?.close());

  it('is the one of all channels: what is not paid counts, HEAD as well', async () => {
    const path = '/reports/Berlin';
    const answers = await Promise.all(
      ['GET', 'HEAD', 'GET', 'HEAD', 'GET', 'HEAD', 'GET', 'HEAD', 'GET', 'HEAD'].map((method) =>
        ask(testbed.gateway.url, { method, path, headers: {} }),
      ),
    );
    for (const { status, headers } of answers) {
      assert.ok(status === 402 || status === 429, `${status}`);
      assert.equal(headers['ratelimit-policy'], '"ip";q=1;w=1');
    }
    assert.ok(answers.some(({ status }) => status === 429));
  });
});
