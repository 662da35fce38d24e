import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import type { Challenge } from '../../../src/payments/x402/wire/challenge.ts';
import type { PaymentResponse } from '../../../src/payments/x402/wire/types.ts';
import { callAt } from '../../../src/pipeline/call.ts';
import { type Answered, ask } from '../../e2e/ask.ts';
import { type OriginTestbed, openOrigin } from './testbed.ts';

const BODY = '{"status":"payment-required"}';
const challenge = (refused: boolean): Challenge => ({
  body: BODY,
  header: 'b2ZmZXI=',
  leftOut: [],
  document: '{}',
  terse: { document: '{}', tokenOnly: '{}' },
  authorization: undefined,
  refusal: refused ? { code: 'PAYMENT_INVALID', reason: 'r', message: 'm', retryable: false } : undefined,
  message: 'pay',
});
const NAME = `<script>alert("1")</script> & 'more'`;
const RESOURCES = {
  'resources.report.name': NAME,
  'resources.report.expose': ['http', 'origin'],
  'backend.originHeaders': ['cookie', 'accept'],
};

describe('a 402 in place', () => {
  let origin: OriginTestbed;
  before(async () => {
    origin = await openOrigin(RESOURCES, (req, res) => {
      const { responseWriter } = callAt(res, 'received');
      responseWriter.paymentRequired(challenge(req.headers['x-refused'] !== undefined));
    });
  });
  after(() => origin.close());
  const get = (
    headers: Readonly<Record<string, string>>,
    method = 'GET',
    path = '/reports/Berlin',
  ): Promise<Answered> => ask(origin.url, { method, path, headers });

  it('is the JSON of every channel for a program', async () => {
    for (const headers of [{}, { accept: '*/*' }, { accept: 'text/html;q=0' }]) {
      const answer = await get(headers);
      assert.deepEqual([answer.status, answer.text], [402, BODY]);
      assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
    }
  });

  it('is a page for a person, with the same offer', async () => {
    const answer = await get({ accept: 'text/html' });
    assert.equal(answer.status, 402);
    assert.equal(answer.headers['content-type'], 'text/html; charset=utf-8');
    assert.equal(answer.headers['payment-required'], 'b2ZmZXI=');
    for (const fact of ['0.01 USDC', 'eip155:84532', '0x1111111111111111111111111111111111111111'])
      assert.ok(answer.text.includes(fact), fact);
    assert.ok(answer.text.includes('https://api.shop.example/reports/Berlin'));
  });

  it('is never kept, and differs by Accept, in either form', async () => {
    for (const headers of [{}, { accept: 'text/html' }]) {
      const { headers: got } = await get(headers);
      assert.deepEqual([got['cache-control'], got.vary, got.etag], ['no-store', 'Accept', undefined]);
    }
  });

  it('stays JSON for a caller that brought a proof', async () => {
    assert.equal((await get({ accept: 'text/html', 'x-refused': '1' })).text, BODY);
  });

  it('has one head for GET and HEAD, and no body for HEAD', async () => {
    for (const accept of ['*/*', 'text/html']) {
      const [whole, bare] = [await get({ accept }), await get({ accept }, 'HEAD')];
      const fixed = ({ headers: { date: _d, 'x-request-id': _i, ...rest } }: Answered) => rest;
      assert.deepEqual([bare.status, bare.text, fixed(bare)], [402, '', fixed(whole)]);
    }
  });

  it('the page runs nothing and loads nothing, whatever name and path hold', async () => {
    const { headers, text } = await get({ accept: 'text/html' }, 'GET', `/reports/'"<b>&x?"><script>`);
    const style = /<style>(.*?)<\/style>/s.exec(text)?.[1] ?? '';
    const hash = createHash('sha256').update(style).digest('base64');
    assert.match(String(headers['content-security-policy']), /^default-src 'none'; /);
    assert.ok(headers['content-security-policy']?.includes(`style-src 'sha256-${hash}'`));
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.doesNotMatch(text, /<script|<b>|<img|<iframe|<form|onerror|style=|javascript:/i);
    assert.ok(text.includes('&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;more&#39;'));
    assert.ok(text.includes('/reports/%27%22%3Cb%3E&amp;x'));
  });
});

describe('an answer in place', () => {
  let origin: OriginTestbed;
  const ETAG = { etag: '"1"', 'accept-ranges': 'bytes', 'content-range': 'bytes 0-1/9', 'content-length': '2' };
  before(async () => {
    origin = await openOrigin(RESOURCES, async (req, res) => {
      const { responseWriter } = callAt(res, 'received');
      const paid = req.headers['x-paid'] !== undefined;
      const answer = { status: 200, headers: ETAG, body: Readable.from([Buffer.from('ab')]) };
      await responseWriter.relay(answer, paid ? { payment: { success: true } as PaymentResponse } : {});
    });
  });
  after(() => origin.close());
  const get = (headers: Readonly<Record<string, string>>, method = 'GET'): Promise<Answered> =>
    ask(origin.url, { method, path: '/reports/Berlin', headers });

  it('free: passes the fields of ranges, and says which headers it depends on', async () => {
    const { headers, text } = await get({});
    assert.deepEqual([headers['accept-ranges'], headers['content-range']], ['bytes', 'bytes 0-1/9']);
    assert.deepEqual([headers.vary, text], ['cookie, accept', 'ab']);
  });

  it('paid: has no ranges, and no cache keeps it', async () => {
    const { headers } = await get({ 'x-paid': '1' });
    assert.deepEqual([headers['accept-ranges'], headers['content-range']], ['none', undefined]);
    assert.equal(headers['cache-control'], 'private, no-store');
  });

  it('free, to a HEAD: the head of the answer without its body', async () => {
    const answer = await get({}, 'HEAD');
    assert.deepEqual([answer.status, answer.headers['content-length'], answer.text], [200, '2', '']);
  });
});
