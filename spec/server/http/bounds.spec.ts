import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { GatewayError } from '../../../src/errors.ts';
import { MAX_BODY_BYTES, readJsonBytes } from '../../../src/server/http/request.ts';
import { sendJson } from '../../../src/server/http/respond.ts';
import { connectionsFor, MAX_CONNECTIONS } from '../../../src/server/listener/listen.ts';
import { type BareListener, openBareListener } from './bare-listener.ts';
import { closeOf, dial, exchange, head, invoke, received, statusOf } from './raw.ts';

/** How soon the 413 follows the byte too many, and how much may be read beyond the cap. */
const ANSWER_WITHIN_MS = 100;
const READ_AHEAD_BYTES = 65_536;
/** What a connection reads before a refusal stops it, and what waits for it then, bytes. */
const READ_UNTIL_STOPPED_BYTES = 3 * READ_AHEAD_BYTES;

describe('bounds of a connection', () => {
  let listener: BareListener;
  /** Bytes that came in, by the id of the request. */
  const taken = new Map<string, () => number>();
  before(async () => {
    listener = await openBareListener([
      async function read(req, res, next) {
        taken.set(String(req.headers['x-request-id']), () => req.socket.bytesRead);
        if (req.url === '/nowhere') throw new GatewayError('NOT_FOUND');
        if (req.method === 'POST') await readJsonBytes(req, res);
        next();
      },
    ]);
  });
  after(() => listener.close());

  it('100 headers are read, 101 are refused', async () => {
    for (const [count, status] of [
      [100, 200],
      [101, 400],
    ] as const) {
      const lines = Array.from({ length: count - 2 }, (_, index) => `X-${index}: 1`);
      const answer = await exchange(listener.url, [
        head(['GET / HTTP/1.1', 'Host: shop', 'Connection: close', ...lines]),
      ]);
      assert.equal(statusOf(answer), status, `${count} headers`);
      if (status === 400) assert.match(answer, /"reason":"headers_too_large"/);
    }
  });

  it('a head of 32 KiB is read, a larger one refused', async () => {
    const sized = (bytes: number): string => {
      const lines = ['GET / HTTP/1.1', 'Host: shop', 'Connection: close'];
      const frame = head([...lines, 'X-Large: ']).length;
      return head([...lines, `X-Large: ${'a'.repeat(bytes - frame)}`]);
    };
    assert.equal(statusOf(await exchange(listener.url, [sized(32_700)])), 200);
    const over = await exchange(listener.url, [sized(32_900)]);
    assert.equal(statusOf(over), 400);
    assert.match(over, /"reason":"headers_too_large"/);
    assert.match(over, /"message":"The head of this request is too large\."/);
  });

  for (const [framing, headers, chunk] of [
    ['chunked', ['Transfer-Encoding: chunked'], (bytes: Buffer) => chunkOf(bytes)],
    ['declared', [`Content-Length: ${4 * MAX_BODY_BYTES}`], (bytes: Buffer) => bytes],
  ] as const)
    it(`413 within ${ANSWER_WITHIN_MS} ms of the first byte too many, ${framing}, with no more read than 64 KiB`, async () => {
      const id = `over-${framing}`;
      const socket = await dial(listener.url);
      const text = received(socket);
      socket.write(invoke('any', [`X-Request-Id: ${id}`, ...headers]));
      if (framing === 'chunked') {
        socket.write(chunk(Buffer.alloc(MAX_BODY_BYTES, 0x20)));
        while ((taken.get(id)?.() ?? 0) <= MAX_BODY_BYTES) await new Promise((resolve) => setImmediate(resolve));
        assert.equal(text(), '', 'the cap itself is accepted');
      }
      const at = performance.now();
      socket.write(chunk(Buffer.alloc(1, 0x20)));
      while (text() === '') await once(socket, 'data');
      const waited = performance.now() - at;
      assert.equal(statusOf(text()), 413);
      assert.ok(waited < ANSWER_WITHIN_MS, `${waited} ms`);
      await pour(socket, chunk);
      assert.ok(
        (taken.get(id)?.() ?? 0) <= MAX_BODY_BYTES + READ_AHEAD_BYTES + 1_024,
        `${taken.get(id)?.()} bytes were read`,
      );
      await closeOf(socket);
    });

  it('an upload to an unknown route is not read, however much of it comes', async () => {
    const socket = await dial(listener.url);
    const text = received(socket);
    socket.write(head(['POST /nowhere HTTP/1.1', 'Host: shop', 'X-Request-Id: unread', 'Transfer-Encoding: chunked']));
    await pour(socket, chunkOf);
    assert.equal(statusOf(text()), 404);
    assert.ok(
      (taken.get('unread')?.() ?? 0) <= READ_UNTIL_STOPPED_BYTES + 1_024,
      `${taken.get('unread')?.()} bytes were read`,
    );
    await closeOf(socket);
  });

  it('a client that never reads is cut after a silence, one that is only slow is not', async () => {
    const SILENT_MS = 1_000;
    const large = '0'.repeat(1_048_576);
    const listener = await openBareListener(
      [
        async function answer(req, res, next) {
          if (req.url === '/late') await delay(SILENT_MS / 2);
          if (req.url === '/large') sendJson(res, 200, large);
          else next();
        },
      ],
      { silentMs: SILENT_MS },
    );
    try {
      const late = await exchange(listener.url, [head(['GET /late HTTP/1.1', 'Host: shop', 'Connection: close'])]);
      assert.equal(statusOf(late), 200);
      const silent = await dial(listener.url);
      // Unread, 20 MiB are far more than the buffers of two kernels hold.
      silent.write(head(['GET /large HTTP/1.1', 'Host: shop']).repeat(20));
      const deadline = performance.now() + 10 * SILENT_MS;
      while ((await listener.connections()) > 0) {
        assert.ok(performance.now() < deadline, 'the connection is kept');
        await delay(SILENT_MS / 10);
      }
      silent.destroy();
    } finally {
      listener.close();
    }
  });

  it('a listener has room for two connections of each call it serves, and never less than its default', () => {
    assert.equal(connectionsFor(512), MAX_CONNECTIONS);
    assert.equal(connectionsFor(100_000), 200_000);
  });
});

/** Continues an upload: it fills the buffers of the two kernels, and none of the gateway. */
async function pour(socket: Socket, chunk: (bytes: Buffer) => Buffer): Promise<void> {
  for (let sent = 0; sent < 4 * 1_024 * 1_024 && !socket.destroyed; sent += 65_536) {
    socket.write(chunk(Buffer.alloc(65_536, 0x20)));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function chunkOf(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}
