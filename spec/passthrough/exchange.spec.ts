import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { MAX_INTERIM } from '../../src/passthrough/exchange.ts';
import { closeOf, dial, envelopeOf, exchange, head, received, statusOf } from '../server/http/raw.ts';
import { bytesOf } from '../support/http-server.ts';
import { liveBytes } from '../support/live-bytes.ts';
import {
  type Merchant,
  openPassthroughTestbed,
  type PassthroughTestbed,
  type PassthroughTestbedParts,
  startMerchant,
  startRawMerchant,
  until,
} from './testbed.ts';

const PATIENCE = { timeout: 60_000 };
/** The shortest that the configuration takes. */
const IDLE_MS = 1_000;
const MIB = 1_048_576;

type Answer = (req: IncomingMessage, res: ServerResponse) => unknown;

describe('a passed exchange', () => {
  let merchant: Merchant;
  let testbed: PassthroughTestbed;
  let answer: Answer;
  let seen: IncomingMessage[] = [];
  before(async () => {
    merchant = await startMerchant(async (req, res) => {
      seen.push(req);
      // A body that breaks off ends the reading of it.
      await Promise.resolve(answer(req, res)).catch(() => res.destroy());
    });
    testbed = await openPassthroughTestbed({
      backendUrl: merchant.url,
      passthrough: { idleTimeoutMs: IDLE_MS },
    });
  });
  after(async () => {
    await testbed.close();
    merchant.close();
  });
  afterEach(() => {
    seen = [];
  });
  const ask = (lines: readonly string[], ...rest: readonly string[]): Promise<string> =>
    exchange(testbed.url, [
      head([lines[0] ?? '', 'Host: shop.example', 'Connection: close', ...lines.slice(1)]),
      ...rest,
    ]);

  /** A connection on which a request begins, and what comes back on it. */
  const begin = async (bytes: string) => {
    const socket = await dial(testbed.url);
    const got = received(socket);
    socket.write(bytes);
    return { socket, got };
  };

  it('sends method, target and body of every request with their own bytes', async () => {
    const bodies: string[] = [];
    answer = async (req, res) => {
      bodies.push((await bytesOf(req)).toString('latin1'));
      res.end('ok');
    };
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'])
      assert.equal(statusOf(await ask([`${method} /a//b/%e4;v=1?x=%20&&y HTTP/1.1`, 'Content-Length: 3'], 'abc')), 200);
    assert.deepEqual([...new Set(seen.map(({ url }) => url))], ['/a//b/%e4;v=1?x=%20&&y']);
    assert.deepEqual(
      bodies,
      Array.from({ length: 7 }, () => 'abc'),
    );
  });

  it('sends a path that begins with two slashes and no host', async () => {
    answer = (_req, res) => res.end('ok');
    for (const target of ['//a%20b', '//a:b/c', '//%c0%af?x'])
      assert.equal(statusOf(await ask([`GET ${target} HTTP/1.1`])), 200, target);
    assert.deepEqual(
      seen.map(({ url }) => url),
      ['//a%20b', '//a:b/c', '//%c0%af?x'],
    );
  });

  it('refuses a head of more fields than are counted, whose last one would delimit a body', async () => {
    const inner = 'GET /other HTTP/1.1\r\nHost: x\r\n\r\n';
    answer = (_req, res) => res.end('ok');
    const fields = Array.from({ length: 99 }, (_, index) => `h${index}: 1`);
    const got = await exchange(testbed.url, [
      head(['GET /home HTTP/1.1', 'Host: a', ...fields, `Content-Length: ${inner.length}`]),
      inner,
    ]);
    assert.equal(statusOf(got), 400);
    assert.equal(envelopeOf(got)['reason'], 'headers_too_large');
    assert.deepEqual(seen, []);
  });

  it('answers a HEAD with the head alone', async () => {
    answer = (_req, res) => res.writeHead(200, { 'content-length': 5 }).end();
    assert.match(await ask(['HEAD /free HTTP/1.1']), /content-length: 5\r\n[\s\S]*\r\n\r\n$/);
  });

  it('relays a redirect, a 304 and a 404 of the backend as they are', async () => {
    for (const [status, headers] of [
      [302, { location: '/elsewhere' }],
      [304, { etag: '"1"' }],
      [404, { 'x-own': 'yes' }],
    ] as const) {
      answer = (_req, res) => res.writeHead(status, headers).end();
      const got = await ask(['GET /free HTTP/1.1']);
      assert.equal(statusOf(got), status);
      for (const [name, value] of Object.entries(headers)) assert.ok(got.includes(`${name}: ${value}`), got);
    }
  });

  it('tells a Location of the backend as the public one', async () => {
    answer = (_req, res) => res.writeHead(302, { location: `${merchant.url}/next?a#b` }).end();
    assert.match(await ask(['GET /free HTTP/1.1']), /location: https:\/\/api\.shop\.example\/next\?a#b\r\n/i);
  });

  it('relays a body byte for byte, short or long, with a length, in chunks or until the end', async () => {
    const every = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    for (const bytes of [0, 1, 256, 16_384, 16_640, 65_536, 65_792, 300_000])
      for (const framing of ['length', 'chunked', 'close'] as const) {
        const body = Buffer.alloc(bytes, every);
        answer = (_req, res) => {
          if (framing === 'length') res.setHeader('content-length', bytes);
          if (framing === 'close') res.removeHeader('transfer-encoding');
          res.useChunkedEncodingByDefault = framing === 'chunked';
          res.writeHead(200, { etag: '"1"' });
          res.end(body);
        };
        const got = await fetch(`${testbed.url}/free`);
        assert.equal(got.headers.get('etag'), '"1"');
        assert.ok(body.equals(await got.bytes()), `${bytes} bytes, ${framing}`);
      }
  });

  it('survives trailers that are announced on a GET, and relays those of a chunked body both ways', async () => {
    answer = async (req, res) => {
      const body = await bytesOf(req);
      res.setHeader('trailer', 'X-Sum');
      res.write(`${body} ${req.trailers['x-sum']} ${req.trailers['payment-signature']}`);
      res.addTrailers({ 'X-Sum': '2' });
      res.end();
    };
    const announced = await ask(['GET /free HTTP/1.1', 'Trailer: X-Sum']);
    assert.equal(statusOf(announced), 200);
    const chunked = await ask(
      ['POST /free HTTP/1.1', 'Transfer-Encoding: chunked', 'Trailer: X-Sum'],
      '3\r\nabc\r\n0\r\nX-Sum: 1\r\nPayment-Signature: forged\r\n\r\n',
    );
    assert.match(chunked, /abc 1 undefined/);
    assert.match(chunked, /\r\n0\r\nx-sum: 2\r\n\r\n$/i);
  });

  it('keeps the body of a GET a body, although Connection names its length', async () => {
    answer = async (req, res) => void res.end((await bytesOf(req)).toString());
    const smuggled = 'GET /reports/berlin HTTP/1.1\r\nHost: x\r\n\r\n';
    for (const named of ['content-length', 'close, Content-Length, host, transfer-encoding']) {
      const got = await exchange(testbed.url, [
        head(['GET /free HTTP/1.1', 'Host: a', `Connection: ${named}`, `Content-Length: ${smuggled.length}`]) +
          smuggled +
          head(['GET /last HTTP/1.1', 'Host: a', 'Connection: close']),
      ]);
      assert.ok(got.includes('/reports/berlin'), got);
    }
    assert.ok(!seen.some(({ url }) => url?.startsWith('/reports')));
  });

  it('invites a body once the backend is reached, and keeps the proof beside it from the backend', async () => {
    answer = async (req, res) => void res.end((await bytesOf(req)).toString());
    const socket = await dial(testbed.url);
    const text = received(socket);
    socket.write(
      head([
        ...['POST /free HTTP/1.1', 'Host: a', 'Expect: 100-continue', 'PAYMENT-SIGNATURE: secret'],
        ...['Content-Length: 3', 'Connection: close'],
      ]),
    );
    while (!text().includes('100 Continue')) await once(socket, 'data');
    socket.write('abc');
    await closeOf(socket);
    assert.match(text(), /HTTP\/1\.1 200 OK[\s\S]*abc$/);
    assert.equal(seen[0]?.headers['payment-signature'], undefined);
    assert.equal(seen[0]?.headers.expect, undefined);
  });

  it('relays early hints', async () => {
    answer = (_req, res) => {
      res.writeEarlyHints({ link: '</a.css>; rel=preload' });
      res.end('ok');
    };
    assert.match(await ask(['GET /free HTTP/1.1']), /^HTTP\/1\.1 103 Early Hints\r\nLink: <\/a\.css>/i);
  });

  it('ends an answer that only announces itself, and hints are no sign of life', async () => {
    let hints = 0;
    answer = (req, res) => {
      const many = req.url === '/many';
      const hint = (): void => {
        hints += 1;
        if (res.destroyed || hints > 3 * MAX_INTERIM) clearInterval(timer);
        else res.writeEarlyHints({ link: '</a.css>; rel=preload' });
      };
      const timer = setInterval(hint, many ? 1 : IDLE_MS / 8);
      res.once('close', () => clearInterval(timer));
    };
    const flooded = await ask(['GET /many HTTP/1.1']);
    assert.equal(flooded.match(/ 103 /g)?.length, MAX_INTERIM);
    assert.match(flooded, /HTTP\/1\.1 502 [\s\S]*"backend_status"/);
    hints = 0;
    assert.match(await ask(['GET /rarely HTTP/1.1']), /HTTP\/1\.1 504 /);
    assert.ok(hints <= MAX_INTERIM, String(hints));
  });

  it('sends the head of an event stream before its first byte, and each event at once', async () => {
    const streams: ServerResponse[] = [];
    answer = (_req, res) => {
      streams.push(res);
      res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    };
    const response = await fetch(`${testbed.url}/events`);
    assert.equal(response.headers.get('content-type'), 'text/event-stream');
    const reader = response.body?.getReader();
    for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
      streams[0]?.write(event);
      assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), event);
    }
    streams[0]?.end();
    assert.equal((await reader?.read())?.done, true);
  });

  it('answers while the request is still coming', async () => {
    answer = (req, res) => void req.pipe(res);
    const request = httpRequest(`${testbed.url}/free`, { method: 'POST' });
    request.write('first');
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    assert.equal(String((await once(response, 'data'))[0]), 'first');
    request.write('second');
    assert.equal(String((await once(response, 'data'))[0]), 'second');
    request.end();
    await once(response, 'end');
  });

  it('streams up and down without keeping the bytes', PATIENCE, async () => {
    answer = (req, res) => void req.pipe(res);
    const piece = Buffer.alloc(MIB, 7);
    let back = 0;
    const request = httpRequest(`${testbed.url}/free`, { method: 'POST' });
    request.on('response', (response) => response.on('data', (chunk: Buffer) => (back += chunk.length)));
    const send = async (mib: number): Promise<number> => {
      const goal = back + mib * MIB;
      for (let sent = 0; sent < mib; sent += 1) if (!request.write(piece)) await once(request, 'drain');
      await until(() => back === goal);
      return liveBytes();
    };
    const before = await send(8);
    const grown = ((await send(72)) - before) / MIB;
    request.end();
    assert.ok(grown < 24, `${grown} MiB more`);
  });

  it('stops reading from the backend when the caller does not read', PATIENCE, async () => {
    let written = 0;
    let closed: Promise<unknown> | undefined;
    answer = (_req, res) => {
      closed = once(res, 'close');
      const piece = Buffer.alloc(65_536);
      const more = (): void => {
        while (res.write(piece)) written += piece.length;
        written += piece.length;
      };
      res.on('drain', more);
      more();
    };
    const socket = await dial(testbed.url);
    socket.pause();
    socket.write(head(['GET /free HTTP/1.1', 'Host: a']));
    await until(() => closed !== undefined);
    // The idle limit ends it, and until then no more moved than the buffers of kernels hold.
    await closed;
    assert.ok(written < 64 * MIB, `${written} bytes`);
    socket.destroy();
  });

  it('ends the request at the backend when the caller leaves, and the answer when the backend breaks off', async () => {
    const gone = Promise.withResolvers<void>();
    answer = (_req, res) =>
      res
        .once('close', () => gone.resolve())
        .writeHead(200)
        .write('x');
    const socket = await dial(testbed.url);
    socket.write(head(['GET /free HTTP/1.1', 'Host: a']));
    await once(socket, 'data');
    socket.destroy();
    await gone.promise;

    answer = (_req, res) => {
      res.writeHead(200, { 'content-length': 100 });
      res.write('0123456789', () => res.socket?.destroy());
    };
    const broken = await exchange(testbed.url, [head(['GET /free HTTP/1.1', 'Host: a'])]);
    assert.match(broken, /^HTTP\/1\.1 200 [\s\S]*0123456789$/);
  });

  it('leaves a connection that is not used before a backend would end it under a request', PATIENCE, async () => {
    const left = Promise.withResolvers<number>();
    using idling = await startRawMerchant((socket) => {
      let answeredAt = 0;
      socket.on('data', () => {
        answeredAt = performance.now();
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      });
      // Others only look whether the backend listens.
      socket.once('end', () => {
        if (answeredAt > 0) left.resolve(performance.now() - answeredAt);
      });
    });
    await using other = await openPassthroughTestbed({ backendUrl: idling.url });
    for (let count = 0; count < 2; count += 1) assert.equal((await fetch(`${other.url}/free`)).status, 200);
    const idleMs = await left.promise;
    assert.ok(idleMs > 1_000 && idleMs < 4_000, `${idleMs} ms`);
  });

  it('ends an upload that stalls with 400, and a silent backend with 504, at the idle limit', PATIENCE, async () => {
    answer = (req) => void req.resume();
    const stalled = await exchange(testbed.url, [
      head(['POST /free HTTP/1.1', 'Host: a', 'Content-Length: 10']),
      '12345',
    ]);
    assert.equal(statusOf(stalled), 400);
    assert.equal(envelopeOf(stalled)['reason'], 'request_timeout');
    answer = () => undefined;
    const silent = await ask(['GET /free HTTP/1.1']);
    assert.equal(statusOf(silent), 504);
    assert.equal(envelopeOf(silent)['code'], 'BACKEND_TIMEOUT');
  });

  it('ends a silent backend at the idle limit, whatever comes behind the request', async () => {
    answer = () => undefined;
    const { socket, got } = await begin(head(['GET /hang HTTP/1.1', 'Host: a']));
    const next = setInterval(() => socket.write(head(['GET /health HTTP/1.1', 'Host: a'])), IDLE_MS / 5);
    await Promise.race([closeOf(socket), once(socket, 'data')]);
    clearInterval(next);
    assert.match(got(), /^HTTP\/1\.1 504 /);
    socket.destroy();
  });

  it('counts an upload as running until its end, also when it was answered before', async () => {
    answer = (_req, res) => res.end('early');
    const running = () => testbed.metric('acg_passthrough_running');
    const { socket, got } = await begin(head(['POST /early HTTP/1.1', 'Host: a', 'Content-Length: 5000000']));
    await once(socket, 'data');
    assert.match(got(), /early/);
    assert.match(await running(), / 1$/);
    socket.on('error', () => undefined).write(Buffer.alloc(4_999_999));
    await closeOf(socket);
    while (!/ 0$/.test(await running()));
  });

  it('lets an upload take longer than the idle limit while its bytes come', PATIENCE, async () => {
    answer = async (req, res) => void res.end((await bytesOf(req)).toString());
    const { socket, got: text } = await begin(
      head(['POST /free HTTP/1.1', 'Host: a', 'Connection: close', 'Content-Length: 8']),
    );
    for (const byte of 'abcdefgh') {
      await new Promise((resolve) => setTimeout(resolve, IDLE_MS / 4));
      socket.write(byte);
    }
    await closeOf(socket);
    assert.match(text(), /abcdefgh$/);
  });

  it('relays an answer that comes before the body was sent, and serves the next request', async () => {
    answer = (req, res) => {
      if (req.url === '/early') res.writeHead(413).end('no');
      else res.end('next');
    };
    const { socket, got: text } = await begin(head(['POST /early HTTP/1.1', 'Host: a', 'Content-Length: 6']));
    while (!text().includes('413')) await once(socket, 'data');
    socket.write(`abcdef${head(['GET /free HTTP/1.1', 'Host: a', 'Connection: close'])}`);
    await closeOf(socket);
    assert.match(text(), /413 [\s\S]*no[\s\S]*200 OK[\s\S]*next/);
  });

  it('refuses what two parsers could read differently, and a body that is none', async () => {
    for (const [lines, body, reason] of [
      [['POST /a HTTP/1.1', 'Transfer-Encoding: gzip, chunked'], '', 'transfer_encoding'],
      [['GET /a HTTP/1.1', 'Host: b'], '', 'repeated_header'],
      [['POST /a HTTP/1.1', 'Transfer-Encoding: chunked'], 'zz\r\n', 'incomplete_body'],
    ] as const) {
      answer = (req, res) => void req.resume().on('end', () => res.end());
      const got = await ask(lines, body);
      assert.equal(statusOf(got), 400);
      assert.equal(envelopeOf(got)['reason'], reason);
    }
    assert.equal(statusOf(await exchange(testbed.url, [head(['GET /a HTTP/1.1', 'Connection: close'])])), 400);
  });

  it('writes one line for each request, with no header and no query in it', async () => {
    answer = (_req, res) => res.end('ok');
    await ask(['GET /lined?secret=1 HTTP/1.1', 'Cookie: session=1', 'Authorization: Bearer t', 'X-Request-Id: mine']);
    const lined = (await testbed.passedLines(1)).filter(({ path }) => path === '/lined');
    assert.equal(lined.length, 1);
    assert.deepEqual(
      { ...lined[0], time: 0, ms: 0, callId: 0 },
      {
        ...{ level: 30, time: 0, requestId: 'mine', callId: 0, method: 'GET', path: '/lined', status: 200, ms: 0 },
        ...{ passed: true, msg: 'request completed' },
      },
    );
    assert.equal(seen[0]?.headers.cookie, 'session=1');
    assert.equal(seen[0]?.headers.authorization, 'Bearer t');
    assert.equal(seen[0]?.headers['x-request-id'], 'mine');
  });

  it('is no call, no event and no receipt', async () => {
    answer = (_req, res) => res.end('ok');
    await ask(['GET /uncounted HTTP/1.1']);
    assert.match(await testbed.metric('acg_passthrough_requests_total{end="relayed"}'), / [1-9]\d*$/);
    assert.equal(await testbed.metric('acg_calls_total'), '');
    const { events } = (await (await testbed.gateway.operator('/api/events')).json()) as { events: unknown[] };
    assert.deepEqual(events, []);
  });
});

/** A gateway before a merchant that answers, or does to its connection, what the test says. */
async function withRawMerchant(
  answer: string | ((socket: Socket) => void),
  use: (testbed: PassthroughTestbed) => Promise<void>,
): Promise<void> {
  using merchant = await startRawMerchant((socket) => {
    let got = '';
    socket.on('data', (chunk: Buffer) => {
      got += chunk.toString('latin1');
      if (!got.includes('\r\n\r\n')) return;
      if (typeof answer === 'string') socket.end(answer, 'latin1');
      else answer(socket);
    });
  });
  await using testbed = await openPassthroughTestbed({ backendUrl: merchant.url });
  await use(testbed);
}

describe('a backend that does not answer well', () => {
  for (const [what, answer, reason] of [
    ['status 99', 'HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n', 'backend_status'],
    ['status 600', 'HTTP/1.1 600 Odd\r\nContent-Length: 0\r\n\r\n', 'backend_status'],
    ['402', 'HTTP/1.1 402 Pay me\r\nContent-Length: 0\r\n\r\n', 'backend_payment_required'],
    ['a coding of its own', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', 'backend_framing'],
    [
      'a 101 that was not asked for',
      'HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      'backend_upgrade',
    ],
  ] as const)
    it(`answers 502 for ${what}`, () =>
      withRawMerchant(answer, async ({ url, metric }) => {
        const got = await exchange(url, [
          head(['GET /free HTTP/1.1', 'Host: a', 'Connection: Upgrade, close', 'Upgrade: h2c']),
        ]);
        assert.equal(statusOf(got), 502);
        assert.equal(envelopeOf(got)['code'], 'BACKEND_ERROR');
        assert.equal(envelopeOf(got)['reason'], reason);
        assert.match(await metric('acg_passthrough_requests_total{end="unusable"}'), / 1$/);
      }));

  it('relays one whose reason phrase, trailers or connection fields are not for the caller', () =>
    withRawMerchant(
      'HTTP/1.1 200 O\x01K\r\nTrailer: X\r\nContent-Length: 2\r\nConnection: X-Own\r\nX-Own: 1\r\nKeep-Alive: timeout=5\r\n' +
        'Payment-Response: forged\r\nX-Payment: forged\r\nAgent_Commerce_Payer: forged\r\nX-Request-Id: theirs\r\n\r\nok',
      async ({ url }) => {
        const got = await exchange(url, [
          head(['GET /free HTTP/1.0', 'Host: a', 'X-Request-Id: mine', 'Connection: close']),
        ]);
        assert.equal(statusOf(got), 200);
        assert.doesNotMatch(got, /forged|theirs|trailer|x-own|keep-alive/i);
        assert.match(got, /x-request-id: mine\r\n/i);
      },
    ));

  it('answers 502 with the envelope, or with a page, when nothing listens, and the process goes on', async () => {
    const merchant = await startRawMerchant(() => undefined);
    merchant.close();
    await using testbed = await openPassthroughTestbed({ backendUrl: merchant.url });
    const dead = await fetch(`${testbed.url}/free`, { method: 'POST', body: 'x'.repeat(200_000) });
    assert.equal(dead.status, 502);
    assert.equal(((await dead.json()) as { code: string }).code, 'BACKEND_ERROR');
    const page = await fetch(`${testbed.url}/free`, {
      headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' },
    });
    assert.equal(page.status, 502);
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
    assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none';/);
    assert.equal(page.headers.get('cache-control'), 'no-store');
    assert.doesNotMatch(await page.text(), /127\.0\.0\.1|ECONNREFUSED|<script/);
    assert.match(await testbed.metric('acg_passthrough_requests_total{end="unreachable"}'), / 2$/);
    assert.equal((await testbed.passedLines(2)).length, 2);
  });

  it('answers 502 with a head of its own when the first bytes of a body are broken', () =>
    withRawMerchant(
      'HTTP/1.1 200 Fine\r\nContent-Encoding: gzip\r\nSet-Cookie: sid=1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n',
      async (testbed) => {
        const got = await exchange(testbed.url, [head(['GET /free HTTP/1.1', 'Host: a', 'Connection: close'])]);
        assert.match(got, /^HTTP\/1\.1 502 Bad Gateway\r\n/);
        assert.doesNotMatch(got, /content-encoding|set-cookie/i);
        assert.equal(envelopeOf(got)['code'], 'BACKEND_ERROR');
      },
    ));

  it('answers 502 when the connection is reset, before the head and while the body is sent', () =>
    withRawMerchant(
      (socket) => void socket.resetAndDestroy(),
      async ({ url }) => {
        for (const body of ['', 'x'.repeat(MIB)])
          assert.equal((await fetch(`${url}/free`, { method: 'POST', body })).status, 502);
      },
    ));
});

describe('running out of room', () => {
  const ends = new AsyncDisposableStack();
  after(() => ends.disposeAsync());
  /** A gateway before a merchant that holds what it is asked. */
  async function open(parts: Partial<PassthroughTestbedParts> = {}) {
    const held: ServerResponse[] = [];
    const merchant = ends.use(await startMerchant((_req, res) => void held.push(res)));
    return { held, testbed: ends.use(await openPassthroughTestbed({ backendUrl: merchant.url, ...parts })) };
  }

  it('refuses with 503 and Retry-After what waited too long, and lets the first ones finish', PATIENCE, async () => {
    const { held, testbed } = await open({ overrides: { limits: { maxPassthrough: 1 } } });
    const first = fetch(`${testbed.url}/first`);
    await until(() => held.length > 0);
    const second = await fetch(`${testbed.url}/second`);
    assert.equal(second.status, 503);
    assert.equal(second.headers.get('retry-after'), '1');
    held[0]?.end('done');
    assert.equal(await (await first).text(), 'done');
    assert.equal(held.length, 1);
  });

  it('finishes running downloads in the drain, with the end of their connection', PATIENCE, async () => {
    const { held, testbed } = await open();
    const download = exchange(testbed.url, [head(['GET /file HTTP/1.1', 'Host: a'])]);
    await until(() => held.length > 0);
    let drained = false;
    const drain = testbed.gateway.drain(30_000).then(() => {
      drained = true;
    });
    held[0]?.write('half');
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(drained, false);
    held[0]?.end('whole');
    assert.match(await download, /connection: close[\s\S]*half[\s\S]*whole/i);
    await drain;
  });

  it('ends what outlives the drain: 502 where no answer has begun, else the connection breaks', PATIENCE, async () => {
    const { held, testbed } = await open();
    const begun = exchange(testbed.url, [head(['GET /begun HTTP/1.1', 'Host: a'])]);
    await until(() => held.length === 1);
    held[0]?.write('half');
    const silent = fetch(`${testbed.url}/unanswered`);
    await until(() => held.length === 2);
    await testbed.gateway.drain(50);
    const { status } = await silent;
    assert.equal(status, 502);
    assert.match(await begun, /half/);
    assert.doesNotMatch(await begun, /\r\n0\r\n/, 'it does not look whole');
  });
});
