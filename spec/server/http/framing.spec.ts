import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { SINGLE_FIELDS } from '../../../src/server/http/request.ts';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { envelopeOf, exchange, head, invoke } from './raw.ts';

const CHUNKED = 'Transfer-Encoding: chunked';
const LENGTH = 'Content-Length: 2';
const CLOSE = 'Connection: close';
const CHUNKS = '2\r\n{}\r\n0\r\n\r\n';
const start = (line: string, ...lines: readonly string[]): string => head([line, 'Host: shop', ...lines]);
const get = (...lines: readonly string[]): string => start('GET /api/resources HTTP/1.1', ...lines);
const old = (version: string, ...lines: readonly string[]): string =>
  start(`POST /api/resources/cities/invoke HTTP/${version}`, 'Content-Type: application/json', ...lines);

/** Bytes that Node's parser passes and two readers could read differently, and `details.reason`. */
const REFUSED: Readonly<Record<string, readonly [bytes: string, reason: string]>> = {
  'a transfer coding before chunked': [
    `${invoke('cities', ['Transfer-Encoding: gzip, chunked'])}${CHUNKS}`,
    'transfer_encoding',
  ],
  'the transfer coding identity': [`${invoke('cities', ['Transfer-Encoding: identity'])}{}`, 'transfer_encoding'],
  'chunks in HTTP/1.0': [`${old('1.0', CHUNKED)}${CHUNKS}`, 'transfer_encoding'],
  'a version 2.0': [`${old('2.0', LENGTH)}{}`, 'http_version'],
  'a version 0.9': [`${old('0.9', LENGTH)}{}`, 'http_version'],
  'no version at all': ['GET /api/resources\r\n\r\n', 'http_version'],
  'a Trailer header': [`${invoke('cities', [CHUNKED, 'Trailer: X-A'])}${CHUNKS}`, 'trailers'],
  'trailers that were not announced': [`${invoke('cities', [CHUNKED])}2\r\n{}\r\n0\r\nX-A: 1\r\n\r\n`, 'trailers'],
  'GET with a declared body': [`${get(LENGTH)}{}`, 'unexpected_body'],
  'GET with a chunked body': [`${get(CHUNKED)}${CHUNKS}`, 'unexpected_body'],
  'HEAD with a body': [`${start('HEAD /health HTTP/1.1', LENGTH)}{}`, ''],
  'a probe with a body': [`${start('GET /health HTTP/1.1', LENGTH)}{}`, 'unexpected_body'],
  'a request without Host': [head(['GET /health HTTP/1.1']), 'host_missing'],
  'a transfer encoding twice': [`${invoke('cities', [CHUNKED, CHUNKED])}${CHUNKS}`, 'malformed_request'],
  'a length with a sign': [`${invoke('cities', ['Content-Length: +2'])}{}`, 'malformed_request'],
  'a length that is a list': [`${invoke('cities', ['Content-Length: 2, 2'])}{}`, 'malformed_request'],
  'both lengths': [`${invoke('cities', [LENGTH, CHUNKED])}{}`, 'malformed_request'],
  'a transfer encoding that is almost chunked': [
    `${invoke('cities', ['Transfer-Encoding: xchunked'])}{}`,
    'transfer_encoding',
  ],
  'a folded header': [`${invoke('cities', ['X-A: 1\r\n 2', LENGTH])}{}`, 'malformed_request'],
  'a carriage return in a header': [`${invoke('cities', ['X-Request-Id: a\rb', LENGTH])}{}`, 'malformed_request'],
  'a line that is no request': ['GARBAGE\r\n\r\n{}', 'malformed_request'],
  'a space before the colon': [`${invoke('cities', ['Content-Length : 2'])}{}`, 'malformed_request'],
};

describe('requests that two parsers could read differently', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed({ overrides: { publish: [] } });
  });
  after(() => testbed.close());

  for (const [shape, [bytes, reason]] of Object.entries(REFUSED))
    it(`${shape} is refused with the envelope, and ends its connection`, async () => {
      testbed.backend.forget();
      const answer = await exchange(testbed.gateway.url, [bytes]);
      assert.match(answer, /^HTTP\/1\.1 400 [\s\S]*connection: close/i);
      if (reason !== '') assert.deepEqual(envelopeOf(answer), { code: 'INPUT_INVALID', reason });
      assert.equal(testbed.backend.requests.length, 0);
    });

  const SERVED: Readonly<Record<string, string>> = {
    'chunked in another case': `${invoke('cities', ['Transfer-Encoding: Chunked', CLOSE])}${CHUNKS}`,
    'HTTP/1.0 with a length': `${old('1.0', LENGTH)}{}`,
    'HTTP/1.0 without Host': 'GET /health HTTP/1.0\r\n\r\n',
    'GET with the length 0': get('Content-Length: 0', CLOSE),
    'a target in absolute form': start('GET http://shop/health HTTP/1.1', CLOSE),
    'a target with an origin that is none': start('GET other://[shop/health HTTP/1.1', CLOSE),
  };
  for (const [shape, bytes] of Object.entries(SERVED))
    it(`${shape} is served`, async () => {
      assert.match(await exchange(testbed.gateway.url, [bytes]), /^HTTP\/1\.1 200 /);
    });

  for (const method of ['GET', 'POST', 'OPTIONS'])
    for (const target of ['http://shop', 'http://shop?/health', 'http://[shop/', 'other://shop', 'other://'])
      it(`${method} ${target} has a path, at which nothing is served`, async () => {
        const bytes = head([`${method} ${target} HTTP/1.1`, 'Host: shop', 'X-Request-Id: mine', CLOSE]);
        const answer = await exchange(testbed.gateway.url, [bytes]);
        assert.match(answer, /^HTTP\/1\.1 404 [\s\S]*x-request-id: mine[\s\S]*"code":"NOT_FOUND"/i);
      });

  const VALUES: Readonly<Record<string, readonly [string, string]>> = {
    authorization: ['Bearer one', 'Bearer operator-token-of-the-tests'],
    'agent-authorization': ['b25l', 'dHdv'],
    'content-type': ['application/json', 'text/plain'],
    host: ['shop', 'other'],
    'last-event-id': ['evt_1-1', 'evt_2-1'],
  };
  for (const field of SINGLE_FIELDS.filter((name) => name !== 'content-length'))
    it(`${field} twice is refused by its name, with the same value and with another`, async () => {
      const [one, other] = VALUES[field] ?? ['', ''];
      for (const second of [one, other]) {
        const twice = [`${field}: ${one}`, `${field.toUpperCase()}: ${second}`];
        const lines = field === 'host' ? twice : ['Host: shop', ...twice];
        const answer = await exchange(testbed.gateway.url, [head(['GET /api/events HTTP/1.1', ...lines])]);
        assert.match(answer, /^HTTP\/1\.1 400 /);
        assert.deepEqual(envelopeOf(answer), { code: 'INPUT_INVALID', reason: 'repeated_header', field });
      }
    });

  it('content-length twice is refused with the same value and with another', async () => {
    for (const second of ['2', '3']) {
      const answer = await exchange(testbed.gateway.url, [
        `${invoke('cities', [LENGTH, `Content-Length: ${second}`])}{}`,
      ]);
      assert.deepEqual(envelopeOf(answer), { code: 'INPUT_INVALID', reason: 'malformed_request' });
    }
  });

  it('a second operator token never authenticates, in whichever order', async () => {
    for (const tokens of [
      ['operator-token-of-the-tests', 'wrong'],
      ['wrong', 'operator-token-of-the-tests'],
    ]) {
      const lines = tokens.map((token) => `Authorization: Bearer ${token}`);
      const answer = await exchange(testbed.gateway.url, [start('GET /api/events HTTP/1.1', ...lines, CLOSE)]);
      assert.match(answer, /^HTTP\/1\.1 400 /);
    }
  });

  it('a repeated X-Request-Id is replaced, not refused', async () => {
    const answer = await exchange(testbed.gateway.url, [get('X-Request-Id: one', 'X-Request-Id: one', CLOSE)]);
    assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*x-request-id: req_/i);
  });

  it('what is pipelined behind a last answer is not served: it could not be answered', async () => {
    const call = `${invoke('free_echo', [LENGTH, CLOSE])}{}`;
    const LAST: Readonly<Record<string, string>> = {
      'of a body where none may be': `${get(LENGTH)}{}`,
      'of trailers': `${invoke('cities', [CHUNKED])}2\r\n{}\r\n0\r\nX-A: 1\r\n\r\n`,
    };
    for (const [shape, refused] of Object.entries(LAST)) {
      testbed.backend.forget();
      const answer = await exchange(testbed.gateway.url, [`${refused}${call}`]);
      assert.equal(answer.match(/HTTP\/1\.1 \d/g)?.length, 1, shape);
      const echoes = testbed.backend.requests.filter(({ body }) => body.toString() === '{}');
      assert.equal(echoes.length, 0, shape);
    }
  });

  it('the management listener refuses the same', async () => {
    const answer = await exchange(testbed.gateway.managementUrl, [`${start('GET /health HTTP/1.1', LENGTH)}{}`]);
    assert.deepEqual(envelopeOf(answer), { code: 'INPUT_INVALID', reason: 'unexpected_body' });
  });
});
