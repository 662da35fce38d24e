import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { closes, Framer, headerOf } from './framing.ts';

const PLAIN = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello';
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n';
const TRAILED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n';
const EMPTY_CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';
const BARE = 'GET /supported HTTP/1.1\r\nHost: a\r\n\r\n';

function bodies(chunks: readonly string[]): readonly string[] {
  const found: string[] = [];
  const framer = new Framer();
  for (const chunk of chunks)
    framer.take(Buffer.from(chunk), ({ bodyAt, end }, bytes) => found.push(bytes.toString('latin1', bodyAt, end)));
  return found;
}

describe('messages in what a socket received', () => {
  for (const [what, text, body] of [
    ['with a length', PLAIN, 'hello'],
    ['in chunks', CHUNKED, '5\r\nhello\r\n0\r\n\r\n'],
    ['in chunks, with a trailer', TRAILED, '5\r\nhello\r\n0\r\nA: b\r\n\r\n'],
    ['in no chunk but the last', EMPTY_CHUNKED, '0\r\n\r\n'],
    ['without a body', BARE, ''],
  ] as const) {
    it(`finds one ${what}`, () => assert.deepEqual(bodies([text]), [body]));
    it(`finds two ${what} in one piece`, () => assert.deepEqual(bodies([text + text]), [body, body]));
    it(`finds two ${what} byte by byte`, () => assert.deepEqual(bodies((text + text).split('')), [body, body]));
  }

  it('gives nothing before the last byte', () => assert.deepEqual(bodies([PLAIN.slice(0, -1)]), []));

  it('reads a header in any case, and none that is not there', () => {
    assert.equal(headerOf('HTTP/1.1 200 OK\r\nPayment-Response:  abc\r\nDate: x', 'payment-response'), 'abc');
    assert.equal(headerOf('HTTP/1.1 200 OK\r\nDate: x', 'date'), 'x');
    assert.equal(headerOf('HTTP/1.1 200 OK\r\nX-Date: x', 'date'), undefined);
  });

  it('sees that a connection ends', () => {
    assert.equal(closes('HTTP/1.1 200 OK\r\nConnection: close'), true);
    assert.equal(closes('HTTP/1.1 200 OK\r\nConnection: keep-alive'), false);
  });
});
