import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { openSeller, type Seller } from '../support/seller.ts';

/** Answers to one raw request, read until the connection ends or `untilSeen` is in it. */
async function exchange(url: string, chunks: readonly (string | Buffer)[], untilSeen?: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = '';
  const done = new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (untilSeen !== undefined && text.includes(untilSeen)) resolve();
    });
    socket.on('close', () => resolve());
    socket.on('error', () => resolve());
  });
  await once(socket, 'connect');
  for (const chunk of chunks) socket.write(chunk);
  await done;
  socket.destroy();
  return text;
}

const head = (lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`;
const invoke = (id: string, lines: readonly string[]): string =>
  head([`POST /api/resources/${id}/invoke HTTP/1.1`, 'Host: shop', 'Content-Type: application/json', ...lines]);

/** Writes 1 KiB chunks until the peer stops it; resolves with the bytes written and the first answer. */
async function pourUntilAnswered(socket: Socket): Promise<{ readonly written: number; readonly answer: string }> {
  const chunk = Buffer.alloc(1_024, 0x20);
  let written = 0;
  let answer = '';
  socket.on('error', () => undefined);
  socket.on('data', (bytes: Buffer) => {
    answer += bytes.toString('latin1');
  });
  while (answer === '' && written < 4 * 1024 * 1024 && !socket.destroyed) {
    socket.write(`400\r\n${chunk.toString('latin1')}\r\n`);
    written += chunk.length;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { written, answer };
}

describe('what comes over the wire', () => {
  let seller: Seller;
  before(async () => {
    seller = await openSeller();
  });
  after(() => seller.close());

  it('Expect: 100-continue gets its go-ahead, and the merchant gets the body and none of the caller headers', async () => {
    seller.merchant.forget();
    const answer = await exchange(seller.shop.url, [
      invoke('free_echo', [
        'Expect: 100-continue',
        'Content-Length: 7',
        'Authorization: Bearer mine',
        'Connection: close',
      ]),
      '{"a":1}',
    ]);
    assert.match(answer, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    assert.ok(answer.endsWith('{"a":1}'));
    const [request] = seller.merchant.requests;
    assert.equal(request?.body.toString(), '{"a":1}');
    assert.ok(!request?.rawHeaders.some((value) => /expect|authorization|mine/i.test(value)));
  });

  it('Expect: 100-continue is not invited to send what is refused', async () => {
    const answer = await exchange(seller.shop.url, [
      invoke('free_echo', ['Expect: 100-continue', 'Content-Length: 9999999']),
    ]);
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.ok(!answer.includes('100 Continue'));
  });

  it('an unknown expectation is not a reason to fail', async () => {
    const answer = await exchange(seller.shop.url, [
      invoke('cities', ['Expect: 200-maybe', 'Content-Length: 2', 'Connection: close']),
      '{}',
    ]);
    assert.match(answer, /^HTTP\/1\.1 200 /);
  });

  it('Upgrade: h2c is served as the plain request it is, and tunnels nothing', async () => {
    seller.merchant.forget();
    const lines = [
      'Connection: Upgrade, HTTP2-Settings, close',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAAQAAP__',
      'Content-Length: 2',
    ];
    const answer = await exchange(seller.shop.url, [invoke('free_echo', lines), '{}']);
    assert.match(answer, /^HTTP\/1\.1 200 /);
    const raw = seller.merchant.requests[0]?.rawHeaders.join('|') ?? '';
    assert.ok(!/upgrade|http2-settings/i.test(raw));
  });

  it('headers nominated by Connection reach nobody, and do not weaken ours', async () => {
    seller.merchant.forget();
    const lines = [
      'Connection: close, X-Request-Id, Content-Type, X-Secret',
      'X-Secret: 1',
      'X-Request-Id: nominated',
      'Content-Length: 2',
    ];
    const answer = await exchange(seller.shop.url, [invoke('free_echo', lines), '{}']);
    assert.match(answer, /x-request-id: nominated/i);
    const names = (seller.merchant.requests[0]?.rawHeaders ?? []).map((value) => value.toLowerCase());
    assert.ok(names.includes('x-request-id') && !names.includes('x-secret'));
  });

  it('413 goes out with the first byte too many of an endless upload, which is not drained', async () => {
    const { hostname, port } = new URL(seller.shop.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.write(invoke('free_echo', ['Transfer-Encoding: chunked']));
    const { written, answer } = await pourUntilAnswered(socket);
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.match(answer, /connection: close/i);
    assert.ok(written < 1024 * 1024, `${written} bytes were taken`);
    if (!socket.closed) await once(socket, 'close');
  });

  it('two proofs of 8 KiB fit into one head, 33 KiB do not and get the envelope', async () => {
    const proofs = [`Payment-Signature: ${'A'.repeat(8_192)}`, `Agent-Authorization: ${'B'.repeat(8_192)}`];
    const fits = await exchange(seller.shop.url, [
      invoke('cities', [...proofs, 'Content-Length: 2', 'Connection: close']),
      '{}',
    ]);
    assert.match(fits, /^HTTP\/1\.1 200 /);
    const over = await exchange(seller.shop.url, [
      invoke('cities', [`X-Large: ${'C'.repeat(33_000)}`, 'Content-Length: 2']),
      '{}',
    ]);
    assert.match(over, /^HTTP\/1\.1 400 /);
    assert.equal(
      (JSON.parse(over.split('\r\n\r\n')[1] ?? '') as { details: { reason: string } }).details.reason,
      'headers_too_large',
    );
  });

  it('keep-alive: calls one after another on one connection', async () => {
    const one = invoke('cities', ['Content-Length: 2']);
    const last = invoke('cities', ['Content-Length: 2', 'Connection: close']);
    const answer = await exchange(seller.shop.url, [`${one}{}`, `${last}{}`]);
    assert.equal(answer.match(/HTTP\/1\.1 200 /g)?.length, 2);
  });

  it('a refused upload ends its own connection and no later call on it', async () => {
    const noType = head(['POST /api/resources/cities/invoke HTTP/1.1', 'Host: shop', 'Content-Length: 2']);
    const next = invoke('free_slow', ['Content-Length: 27', 'Connection: close']);
    const { hostname, port } = new URL(seller.shop.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.write(`${noType}{}`);
    await once(socket, 'data');
    assert.match(text, /^HTTP\/1\.1 415 [\s\S]*connection: close/i);
    socket.write(`${next}{"chunks":15,"everyMs":100}`);
    await once(socket, 'close');
    assert.equal(text.match(/HTTP\/1\.1/g)?.length, 1, 'the second call was never begun');
  });

  it('an upload that nobody reads is not drained: a route that is none, an unknown type', async () => {
    for (const request of [
      head(['POST /nowhere HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked']),
      head([
        'POST /api/resources/cities/invoke HTTP/1.1',
        'Host: shop',
        'Content-Type: text/plain',
        'Transfer-Encoding: chunked',
      ]),
    ]) {
      const { hostname, port } = new URL(seller.shop.url);
      const socket = connect(Number(port), hostname);
      await once(socket, 'connect');
      socket.write(request);
      const { answer } = await pourUntilAnswered(socket);
      assert.match(answer, /^HTTP\/1\.1 4(?:04|15) [\s\S]*connection: close/i);
      if (!socket.closed) await once(socket, 'close');
    }
  });

  it('garbage behind a running answer spoils nothing of it, and ends the connection after it', async () => {
    for (const id of ['free_slow', 'slow']) {
      const input = { chunks: 6, everyMs: 40 };
      const proof = id === 'slow' ? [`Payment-Signature: ${await seller.proof('slow', input)}`] : [];
      const body = JSON.stringify(input);
      const { hostname, port } = new URL(seller.shop.url);
      const socket = connect(Number(port), hostname);
      await once(socket, 'connect');
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
      });
      socket.on('error', () => undefined);
      socket.write(`${invoke(id, [...proof, `Content-Length: ${body.length}`])}${body}`);
      while (!text.includes('000000001')) await once(socket, 'data');
      socket.write('GARBAGE\r\n\r\n\0\0');
      await once(socket, 'close');
      assert.match(text, /^HTTP\/1\.1 200 /);
      assert.ok(text.endsWith('000000005\n\r\n0\r\n\r\n'), text.slice(-80));
      assert.equal(text.match(/HTTP\/1\.1/g)?.length, 1);
    }
  });

  it('garbage behind two pipelined calls: both are answered', async () => {
    const input = '{"chunks":6,"everyMs":40}';
    const call = (id: string): string => `${invoke(id, [`Content-Length: ${input.length}`])}${input}`;
    const { hostname, port } = new URL(seller.shop.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.write(`${call('free_slow')}${call('free_slow')}`);
    while (!text.includes('000000001')) await once(socket, 'data');
    socket.write('GARBAGE\r\n\r\n');
    await once(socket, 'close');
    assert.equal(text.match(/HTTP\/1\.1 200 /g)?.length, 2);
    assert.equal(text.match(/000000005/g)?.length, 2);
  });

  it('a refused upload is answered also to a client that reads late', async () => {
    const { hostname, port } = new URL(seller.shop.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.pause();
    socket.on('error', () => undefined);
    socket.write(invoke('free_echo', ['Content-Length: 4000000']));
    socket.write(Buffer.alloc(4_000_000, 0x20));
    await new Promise((resolve) => setTimeout(resolve, 100));
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    socket.resume();
    await once(socket, 'close');
    assert.match(text, /^HTTP\/1\.1 413 [\s\S]*PAYLOAD_TOO_LARGE/);
  });

  it('a body that breaks off in the middle is answered under the id of its request', async () => {
    const request = invoke('cities', ['Transfer-Encoding: chunked', 'X-Request-Id: broken-body']);
    const answer = await exchange(seller.shop.url, [`${request}ZZ\r\n`]);
    assert.match(answer, /^HTTP\/1\.1 400 [\s\S]*x-request-id: broken-body/i);
    assert.match(answer, /"requestId":"broken-body"/);
  });

  it('a request without Host, and CONNECT, get the envelope', async () => {
    const hostless = await exchange(seller.shop.url, [head(['GET /health HTTP/1.1', 'Connection: close'])]);
    const tunnel = await exchange(seller.shop.url, [head(['CONNECT a:443 HTTP/1.1', 'Host: a:443'])]);
    for (const answer of [hostless, tunnel]) {
      assert.match(answer, /^HTTP\/1\.1 400 [\s\S]*x-request-id: req_/i);
      assert.equal((JSON.parse(answer.split('\r\n\r\n')[1] ?? '') as { code: string }).code, 'INPUT_INVALID');
    }
  });

  const smuggling: Readonly<Record<string, string>> = {
    'both lengths': invoke('cities', ['Content-Length: 2', 'Transfer-Encoding: chunked']),
    'two content lengths': invoke('cities', ['Content-Length: 2', 'Content-Length: 3']),
    'a transfer encoding that is almost chunked': invoke('cities', ['Transfer-Encoding: xchunked']),
    'a folded header': invoke('cities', ['X-A: 1\r\n 2', 'Content-Length: 2']),
    'a space before the colon': invoke('cities', ['Content-Length : 2']),
  };
  for (const [shape, request] of Object.entries(smuggling))
    it(`refuses ${shape} with the envelope and calls nobody`, async () => {
      seller.merchant.forget();
      const answer = await exchange(seller.shop.url, [request, '{}']);
      assert.match(answer, /^HTTP\/1\.1 400 /);
      assert.equal((JSON.parse(answer.split('\r\n\r\n')[1] ?? '') as { code: string }).code, 'INPUT_INVALID');
      assert.equal(seller.merchant.requests.length, 0);
    });
});
