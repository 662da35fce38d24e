import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { Response } from 'express';
import { openTestbed, type Testbed } from '../../support/testbed.ts';
import { openBareListener } from './bare-listener.ts';
import { closeOf, dial, envelopeOf, exchange, head, invoke, pourUntilAnswered, received } from './raw.ts';

describe('a request to the gateway', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  it('with Expect: 100-continue may send its body, which reaches the backend without its headers', async () => {
    testbed.backend.forget();
    const socket = await dial(testbed.gateway.url);
    const text = received(socket);
    const fields = ['Expect: 100-continue', 'Content-Length: 7', 'Authorization: Bearer mine', 'Connection: close'];
    socket.write(invoke('free_echo', fields));
    await once(socket, 'data');
    socket.write('{"a":1}');
    await closeOf(socket);
    const answer = text();
    assert.match(answer, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    assert.ok(answer.endsWith('{"a":1}'));
    const [request] = testbed.backend.requests;
    assert.equal(request?.body.toString(), '{"a":1}');
    assert.ok(!request?.rawHeaders.some((value) => /expect|authorization|mine/i.test(value)));
  });

  it('with Expect: 100-continue gets no 100 for what is refused', async () => {
    const answer = await exchange(testbed.gateway.url, [
      invoke('free_echo', ['Expect: 100-continue', 'Content-Length: 9999999']),
    ]);
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.ok(!answer.includes('100 Continue'));
  });

  it('with an unknown expectation is served', async () => {
    const answer = await exchange(testbed.gateway.url, [
      invoke('cities', ['Expect: 200-maybe', 'Content-Length: 2', 'Connection: close']),
      '{}',
    ]);
    assert.match(answer, /^HTTP\/1\.1 200 /);
  });

  for (const [protocol, ...fields] of [
    ['h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
    ['websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='],
  ])
    it(`with Upgrade: ${protocol} is served as a plain request, and tunnels nothing`, async () => {
      testbed.backend.forget();
      const connection = 'Connection: Upgrade, HTTP2-Settings, close';
      const lines = [connection, `Upgrade: ${protocol}`, ...fields, 'Content-Length: 2'];
      const smuggled = head(['GET /cities HTTP/1.1', 'Host: merchant']);
      const answer = await exchange(testbed.gateway.url, [`${invoke('free_echo', lines)}{}${smuggled}`]);
      assert.match(answer, /^HTTP\/1\.1 200 /);
      const [request, ...others] = testbed.backend.requests;
      assert.ok(!/upgrade|http2-settings|websocket/i.test(request?.rawHeaders.join('|') ?? ''));
      assert.deepEqual([others, answer.split('HTTP/1.1').length], [[], 2]);
    });

  it('has headers nominated by Connection, which reach no backend and weaken none of the gateway', async () => {
    testbed.backend.forget();
    const lines = [
      'Connection: close, X-Request-Id, Content-Type, X-Secret',
      'X-Secret: 1',
      'X-Request-Id: nominated',
      'Content-Length: 2',
    ];
    const answer = await exchange(testbed.gateway.url, [invoke('free_echo', lines), '{}']);
    assert.match(answer, /x-request-id: nominated/i);
    const names = (testbed.backend.requests[0]?.rawHeaders ?? []).map((value) => value.toLowerCase());
    assert.ok(names.includes('x-request-id') && !names.includes('x-secret'));
  });

  it('may have two proofs of 8 KiB in its head, but no 33 KiB', async () => {
    const proofs = [`Payment-Signature: ${'A'.repeat(8_192)}`, `Agent-Authorization: ${'B'.repeat(8_192)}`];
    const fits = await exchange(testbed.gateway.url, [
      invoke('cities', [...proofs, 'Content-Length: 2', 'Connection: close']),
      '{}',
    ]);
    assert.match(fits, /^HTTP\/1\.1 200 /);
    const over = await exchange(testbed.gateway.url, [
      invoke('cities', [`X-Large: ${'C'.repeat(33_000)}`, 'Content-Length: 2']),
      '{}',
    ]);
    assert.match(over, /^HTTP\/1\.1 400 /);
    assert.equal(envelopeOf(over)['reason'], 'headers_too_large');
  });

  it('may follow another on one connection', async () => {
    const one = invoke('cities', ['Content-Length: 2']);
    const last = invoke('cities', ['Content-Length: 2', 'Connection: close']);
    const answer = await exchange(testbed.gateway.url, [`${one}{}`, `${last}{}`]);
    assert.equal(answer.match(/HTTP\/1\.1 200 /g)?.length, 2);
  });
});

describe('bytes that are wrong', () => {
  let testbed: Testbed;
  before(async () => {
    testbed = await openTestbed();
  });
  after(() => testbed.close());

  it('413 goes out with the first byte too many of an endless upload, which is not drained', async () => {
    const socket = await dial(testbed.gateway.url);
    socket.write(invoke('free_echo', ['Transfer-Encoding: chunked']));
    const { written, answer } = await pourUntilAnswered(socket);
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.match(answer, /connection: close/i);
    assert.ok(written < 1024 * 1024, `${written} bytes were taken`);
    await closeOf(socket);
  });

  it('a refused upload ends its connection, and a later call on it is not served', async () => {
    const noType = head(['POST /api/resources/cities/invoke HTTP/1.1', 'Host: shop', 'Content-Length: 4']);
    const next = invoke('free_slow', ['Content-Length: 27', 'Connection: close']);
    const socket = await dial(testbed.gateway.url);
    const text = received(socket);
    socket.write(`${noType}{}`);
    await once(socket, 'data');
    assert.match(text(), /^HTTP\/1\.1 415 [\s\S]*connection: close/i);
    socket.write(`{}${next}{"chunks":15,"everyMs":100}`);
    await closeOf(socket);
    assert.equal(text().match(/HTTP\/1\.1/g)?.length, 1, 'the second call was never begun');
  });

  it('an upload of an unknown type is not drained', async () => {
    const socket = await dial(testbed.gateway.url);
    socket.write(
      head([
        'POST /api/resources/cities/invoke HTTP/1.1',
        'Host: shop',
        'Content-Type: text/plain',
        'Transfer-Encoding: chunked',
      ]),
    );
    const { answer } = await pourUntilAnswered(socket);
    assert.match(answer, /^HTTP\/1\.1 415 [\s\S]*connection: close/i);
    await closeOf(socket);
  });

  it('garbage behind a running answer does not change it, and is refused behind it', async () => {
    for (const id of ['free_slow', 'slow']) {
      const input = { chunks: 6, everyMs: 40 };
      const proof = id === 'slow' ? [`Payment-Signature: ${await testbed.proof('slow', input)}`] : [];
      const body = JSON.stringify(input);
      const socket = await dial(testbed.gateway.url);
      const text = received(socket);
      socket.write(`${invoke(id, [...proof, `Content-Length: ${body.length}`])}${body}`);
      while (!text().includes('000000001')) await once(socket, 'data');
      socket.write('GARBAGE\r\n\r\n\0\0');
      await once(socket, 'close');
      assert.match(text(), /^HTTP\/1\.1 200 /);
      assert.match(text(), /000000005\n\r\n0\r\n\r\nHTTP\/1\.1 400 [\s\S]*"malformed_request"/);
      assert.equal(text().match(/HTTP\/1\.1/g)?.length, 2);
    }
  });

  it('garbage behind two pipelined calls: both are answered', async () => {
    const input = '{"chunks":6,"everyMs":40}';
    const call = (id: string): string => `${invoke(id, [`Content-Length: ${input.length}`])}${input}`;
    const socket = await dial(testbed.gateway.url);
    const text = received(socket);
    socket.write(`${call('free_slow')}${call('free_slow')}`);
    while (!text().includes('000000001')) await once(socket, 'data');
    socket.write('GARBAGE\r\n\r\n');
    await once(socket, 'close');
    assert.equal(text().match(/HTTP\/1\.1 200 /g)?.length, 2);
    assert.equal(text().match(/000000005/g)?.length, 2);
  });

  it('a refused upload is answered also to a client that reads late', async () => {
    const socket = await dial(testbed.gateway.url);
    socket.pause();
    socket.write(invoke('free_echo', ['Content-Length: 4000000']));
    socket.write(Buffer.alloc(4_000_000, 0x20));
    await new Promise((resolve) => setTimeout(resolve, 100));
    const text = received(socket);
    socket.resume();
    await closeOf(socket);
    assert.match(text(), /^HTTP\/1\.1 413 [\s\S]*PAYLOAD_TOO_LARGE/);
  });

  it('a body that breaks off in the middle is answered under the id of its request', async () => {
    const request = invoke('cities', ['Transfer-Encoding: chunked', 'X-Request-Id: broken-body']);
    const answer = await exchange(testbed.gateway.url, [`${request}ZZ\r\n`]);
    assert.match(answer, /^HTTP\/1\.1 400 [\s\S]*x-request-id: broken-body/i);
    assert.match(answer, /"requestId":"broken-body"/);
  });

  it('CONNECT gets the envelope', async () => {
    const answer = await exchange(testbed.gateway.url, [head(['CONNECT a:443 HTTP/1.1', 'Host: a:443'])]);
    assert.match(answer, /^HTTP\/1\.1 400 [\s\S]*x-request-id: req_/i);
    assert.equal(envelopeOf(answer)['code'], 'INPUT_INVALID');
  });

  it('a CONNECT whose caller resets the connection before the answer does no harm', async () => {
    for (let times = 0; times < 20; times += 1) {
      const socket = await dial(testbed.gateway.url);
      socket.write(head(['CONNECT a:443 HTTP/1.1', 'Host: a:443']));
      await new Promise((resolve) => setImmediate(resolve));
      socket.resetAndDestroy();
    }
    assert.equal((await testbed.gateway.invoke('cities')).status, 200);
  });
});

const CALL = head(['GET /call HTTP/1.1', 'Host: shop']);
const HEALTH = head(['GET /health HTTP/1.1', 'Host: shop', 'Connection: close']);
const PATIENCE_MS = 60_000;

/** Bytes behind which Node no longer watches the connection. */
const UNWATCHED = {
  CONNECT: head(['CONNECT a:443 HTTP/1.1', 'Host: a:443']),
  'CONNECT with half a body': `${head(['CONNECT a:443 HTTP/1.1', 'Host: a:443', 'Content-Length: 4'])}ab`,
  garbage: 'GARBAGE\r\n\r\n',
};

describe('a tunnel that is not opened', () => {
  for (const [what, bytes] of Object.entries(UNWATCHED).slice(0, 2))
    it(`${what} behind running calls is refused behind their answers`, { timeout: PATIENCE_MS }, async () => {
      const running: Response[] = [];
      const calls = new EventEmitter();
      const listener = await openBareListener([
        function hold(_req, res) {
          running.push(res);
          calls.emit('begun');
        },
      ]);
      const socket = await dial(listener.url);
      const text = received(socket);
      let begun = once(calls, 'begun');
      socket.write(CALL.repeat(3) + bytes);
      for (let answered = 0; answered < 3; answered += 1) {
        await begun;
        assert.equal(running.length, answered + 1, 'one request at a time');
        begun = once(calls, 'begun');
        running.at(-1)?.end();
      }
      await closeOf(socket);
      assert.deepEqual(text().match(/HTTP\/1\.1 \d+/g), [...Array(3).fill('HTTP/1.1 200'), 'HTTP/1.1 400']);
      listener.close();
    });

  for (const [what, bytes] of Object.entries(UNWATCHED))
    it(`${what}: the connection ends, although its caller does not close it`, {
      timeout: PATIENCE_MS,
    }, async () => {
      const listener = await openBareListener([], { maxConnections: () => 1 });
      const { hostname, port } = new URL(listener.url);
      const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
      socket.on('error', () => undefined).resume();
      socket.write(bytes);
      await once(socket, 'end');
      // Another connection is answered once the only one of this listener is free again.
      let answer = '';
      while (answer === '') answer = await exchange(listener.url, [HEALTH]);
      assert.match(answer, /^HTTP\/1\.1 200 /);
      socket.destroy();
      listener.close();
    });
});
