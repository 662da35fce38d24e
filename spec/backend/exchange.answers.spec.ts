import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import type { BackendFailure } from '../../src/backend/exchange.ts';
import { call, lost, withBackend } from './call.ts';

/** The cap that the rows are written for, bytes. */
const CAP_BYTES = 1_000;
/** The total deadline that the rows are written for, milliseconds. */
const TIMEOUT_MS = 150;
/** Between two bytes of a slow answer: well below any usual inactivity limit. */
const TRICKLE_MS = 10;

type Expected =
  | { readonly status: number; readonly body: string; readonly socket: 'kept' | 'gone' }
  | { readonly at: 'head' | 'body'; readonly reason: BackendFailure };

interface Row {
  readonly rule: string;
  /** Bytes to write, or what to do with the socket. */
  readonly answer: string | ((socket: Socket) => void);
  readonly expect: Expected;
}

const full = (body: string, socket: 'kept' | 'gone' = 'kept'): Expected => ({ status: 200, body, socket });
const broken = (at: 'head' | 'body', reason: BackendFailure = 'transport'): Expected => ({ at, reason });

function trickle(head: string): (socket: Socket) => void {
  return (socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write('x'), TRICKLE_MS);
    socket.once('close', () => clearInterval(timer));
  };
}
function chunks(...parts: readonly string[]): string {
  return parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('');
}
const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
const big = 'x'.repeat(CAP_BYTES);

/** What a backend may answer, good and bad. */
const ROWS: readonly Row[] = [
  { rule: 'a body with a length', answer: `${OK}content-length: 5\r\n\r\nhello`, expect: full('hello') },
  { rule: 'a chunked body', answer: `${CHUNKED}${chunks('hel', 'lo')}0\r\n\r\n`, expect: full('hello') },
  {
    rule: 'a chunked body with trailers, which are dropped',
    answer: `${CHUNKED}${chunks('hello')}0\r\npayment-response: forged\r\n\r\n`,
    expect: full('hello'),
  },
  {
    rule: 'a body that ends with the connection',
    answer: (socket) => socket.end(`${OK}connection: close\r\n\r\nhello`),
    expect: full('hello', 'gone'),
  },
  {
    rule: 'an HTTP/1.0 answer',
    answer: (socket) => socket.end('HTTP/1.0 200 OK\r\n\r\nhello'),
    expect: full('hello', 'gone'),
  },
  {
    rule: '103 before the answer is ignored',
    answer: `HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n${OK}content-length: 5\r\n\r\nhello`,
    expect: full('hello'),
  },
  {
    rule: '204 is empty',
    answer: 'HTTP/1.1 204 No Content\r\n\r\n',
    expect: { status: 204, body: '', socket: 'kept' },
  },
  {
    rule: '204 that declares a length is empty, and its connection is not trusted again',
    answer: 'HTTP/1.1 204 No Content\r\ncontent-length: 99999\r\n\r\n',
    expect: { status: 204, body: '', socket: 'gone' },
  },
  { rule: 'an empty body', answer: `${OK}content-length: 0\r\n\r\n`, expect: full('') },
  {
    rule: '302 to itself is answered once and not followed',
    answer: 'HTTP/1.1 302 Found\r\nlocation: /reports/rome\r\ncontent-length: 0\r\n\r\n',
    expect: { status: 302, body: '', socket: 'kept' },
  },
  {
    rule: '402 comes back as a status like any other',
    answer: 'HTTP/1.1 402 Payment Required\r\ncontent-length: 3\r\n\r\npay',
    expect: { status: 402, body: 'pay', socket: 'kept' },
  },
  {
    rule: 'bytes after the declared length are no part of the answer',
    answer: `${OK}content-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged`,
    expect: full('hello', 'gone'),
  },
  {
    rule: 'a body of exactly the cap, declared',
    answer: `${OK}content-length: ${CAP_BYTES}\r\n\r\n${big}`,
    expect: full(big),
  },
  {
    rule: 'a body of exactly the cap, undeclared',
    answer: `${CHUNKED}${chunks(big)}0\r\n\r\n`,
    expect: full(big),
  },
  {
    rule: 'a declared length one byte above the cap fails before the first byte',
    answer: `${OK}content-length: ${CAP_BYTES + 1}\r\n\r\n${big}x`,
    expect: broken('head', 'response_too_large'),
  },
  {
    rule: 'a declared length beyond any number fails before the first byte',
    answer: `${OK}content-length: 9007199254740993\r\n\r\n`,
    expect: broken('head', 'response_too_large'),
  },
  {
    rule: 'an undeclared excess of one byte cuts the answer',
    answer: `${CHUNKED}${chunks(big, 'x')}0\r\n\r\n`,
    expect: broken('body', 'response_too_large'),
  },
  {
    rule: 'an endless body is cut at the cap',
    answer: (socket) => {
      socket.write(`${OK}connection: close\r\n\r\n`);
      const more = (): void => {
        while (!socket.destroyed && socket.write(big));
      };
      socket.on('drain', more);
      more();
    },
    expect: broken('body', 'response_too_large'),
  },
  { rule: 'silence', answer: () => {}, expect: broken('head', 'timeout') },
  { rule: 'a head that never ends', answer: trickle(`${OK}x-slow: `), expect: broken('head', 'timeout') },
  {
    rule: 'a byte at a time, each in time, the last one not',
    answer: trickle(`${OK}content-length: 900\r\n\r\n`),
    expect: broken('body', 'timeout'),
  },
  {
    rule: 'interim answers without end',
    answer: (socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), TRICKLE_MS);
      socket.once('close', () => clearInterval(timer));
    },
    expect: broken('head', 'timeout'),
  },
  { rule: 'closing without an answer', answer: (socket) => socket.end(), expect: broken('head') },
  { rule: 'reset on a fresh connection', answer: (socket) => socket.resetAndDestroy(), expect: broken('head') },
  { rule: 'half a head', answer: (socket) => socket.end(`${OK}content-len`), expect: broken('head') },
  {
    rule: 'fewer bytes than declared',
    answer: (socket) => socket.end(`${OK}content-length: 9\r\n\r\nhello`),
    expect: broken('body'),
  },
  {
    rule: 'fewer bytes than declared on a connection announced to close',
    answer: (socket) => socket.end(`${OK}connection: close\r\ncontent-length: 9\r\n\r\nhello`),
    expect: broken('body'),
  },
  {
    rule: 'a chunked body without its end',
    answer: (socket) => socket.end(`${CHUNKED}${chunks('hello')}`),
    expect: broken('body'),
  },
  {
    rule: '101 to a request that asked for nothing',
    answer: 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
    expect: broken('head'),
  },
  { rule: '101 without Upgrade', answer: 'HTTP/1.1 101 Switching\r\n\r\n', expect: broken('head') },
  {
    rule: '100 to a request that expected none',
    answer: `HTTP/1.1 100 Continue\r\n\r\n${OK}content-length: 0\r\n\r\n`,
    expect: broken('head'),
  },
  { rule: 'garbage', answer: '\x16\x03\x01 not HTTP at all\r\n\r\n', expect: broken('head') },
  { rule: 'another protocol', answer: 'SSH-2.0-OpenSSH_9.2\r\n', expect: broken('head') },
  { rule: 'garbage as chunk size', answer: `${CHUNKED}zz\r\nhello\r\n`, expect: broken('body') },
  {
    rule: 'a header block of 20 KB',
    answer: `${OK}x-large: ${'a'.repeat(20_000)}\r\ncontent-length: 0\r\n\r\n`,
    expect: broken('head'),
  },
  {
    rule: 'two lengths',
    answer: `${OK}content-length: 5\r\ncontent-length: 6\r\n\r\nhello!`,
    expect: broken('head'),
  },
  {
    rule: 'a length and chunks at once',
    answer: `${OK}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    expect: broken('head'),
  },
  { rule: 'a negative length', answer: `${OK}content-length: -1\r\n\r\n`, expect: broken('head') },
];

describe('what the backend may answer', () => {
  for (const { rule, answer, expect } of ROWS) {
    it(rule, async () => {
      const script = typeof answer === 'string' ? (socket: Socket) => socket.write(answer) : answer;
      await withBackend(script, async (connection, backend) => {
        const startedAt = performance.now();
        const got = await call(connection, undefined, { timeoutMs: TIMEOUT_MS, maxResponseBytes: CAP_BYTES });
        const tookMs = performance.now() - startedAt;
        if ('reason' in expect) {
          assert.deepEqual(got, lost(expect.reason, expect.at));
          assert.equal(tookMs >= TIMEOUT_MS - 5, expect.reason === 'timeout', `took ${tookMs} ms`);
        } else {
          assert.ok(got.kind === 'answer', JSON.stringify(got));
          assert.deepEqual(
            { status: got.status, body: got.body.toString() },
            { status: expect.status, body: expect.body },
          );
        }
        const kept = 'socket' in expect && expect.socket === 'kept';
        if (!kept) await backend.settledTo(0);
        assert.equal(backend.open(), kept ? 1 : 0);
        assert.equal(backend.requests.length, 1, 'the request went out once');
        assert.equal(connection.inFlight(), 0);
      });
    });
  }
});
