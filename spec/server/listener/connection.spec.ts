import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { describe, it } from 'node:test';
import { openBareListener } from '../http/bare-listener.ts';
import { closeOf, dial, exchange, head, received, statusOf } from '../http/raw.ts';

const PATIENCE_MS = 60_000;
const GET = head(['GET /call HTTP/1.1', 'Host: shop']);
const LAST = head(['GET /last HTTP/1.1', 'Host: shop', 'Connection: close']);
/** Bytes that look like the end of a head, in bodies. */
const LINES = '\r\n\r\nGET /body HTTP/1.1\r\n\r\n';

const PIPELINE = [
  GET,
  `${head(['POST /declared HTTP/1.1', 'Host: shop', `Content-Length: ${LINES.length}`])}${LINES}`,
  `\r\n${GET}`,
  `${head(['POST /chunked HTTP/1.1', 'Host: shop', 'Transfer-Encoding: chunked'])}${LINES.length.toString(16)}\r\n${LINES}\r\n0\r\n\r\n`,
  LAST,
].join('');
const SERVED = [
  'GET /call 0',
  `POST /declared ${LINES.length}`,
  'GET /call 0',
  `POST /chunked ${LINES.length}`,
  'GET /last 0',
];

/** A listener that answers in a later turn; `most`: how many requests it had at a time. */
async function openSlow() {
  const seen = { served: [] as string[], running: 0, most: 0 };
  const listener = await openBareListener([
    async function answerLater(req, res) {
      seen.running += 1;
      seen.most = Math.max(seen.most, seen.running);
      res.once('close', () => {
        seen.running -= 1;
      });
      let bytes = 0;
      for await (const chunk of req) bytes += (chunk as Buffer).length;
      seen.served.push(`${req.method} ${req.url} ${bytes}`);
      await new Promise((resolve) => setImmediate(resolve));
      res.end();
    },
  ]);
  return { ...listener, seen };
}

describe('requests behind one that runs', () => {
  it('wait as bytes: 64 KiB of them on each of 150 connections do not fill a heap of 115 MB', {
    timeout: PATIENCE_MS,
  }, async () => {
    const execArgv = ['--max-old-space-size=115', '--max-semi-space-size=8'];
    const child = fork(join(import.meta.dirname, 'listener-main.ts'), {
      execArgv,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    try {
      const [url] = (await once(child, 'message')) as [string];
      const bytes = GET.repeat(65_536 / GET.length);
      const sockets = await Promise.all(Array.from({ length: 150 }, () => dial(url)));
      for (const socket of sockets) socket.pause().write(bytes);
      for (let asked = 0; asked < 2; asked += 1) assert.equal(statusOf(await exchange(url, [LAST])), 200);
      assert.equal(child.exitCode ?? child.signalCode, null);
      for (const socket of sockets) socket.destroy();
    } finally {
      child.kill();
    }
  });

  it('are served one at a time and in order, wherever their bytes are divided', { timeout: PATIENCE_MS }, async () => {
    const listener = await openSlow();
    try {
      for (let at = 0; at <= PIPELINE.length; at += 1) {
        listener.seen.served.length = 0;
        const socket = await dial(listener.url);
        socket.setNoDelay(true);
        const text = received(socket);
        socket.write(PIPELINE.slice(0, at));
        await new Promise((resolve) => setImmediate(resolve));
        socket.write(PIPELINE.slice(at));
        await closeOf(socket);
        assert.deepEqual(listener.seen.served, SERVED, `divided at ${at}`);
        assert.equal(text().match(/HTTP\/1\.1 200/g)?.length, SERVED.length);
      }
      assert.equal(listener.seen.most, 1);
    } finally {
      listener.close();
    }
  });

  it('are served also where each byte comes alone', { timeout: PATIENCE_MS }, async () => {
    const listener = await openSlow();
    try {
      const socket = await dial(listener.url);
      socket.setNoDelay(true).resume();
      for (const byte of PIPELINE) {
        socket.write(byte);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await closeOf(socket);
      assert.deepEqual([listener.seen.served, listener.seen.most], [SERVED, 1]);
    } finally {
      listener.close();
    }
  });

  it('may be an upgrade, which has the bytes behind its head', { timeout: PATIENCE_MS }, async () => {
    const listener = await openBareListener([], {
      relay: {
        idleTimeoutMs: 1_000,
        upgrade(_req, socket: Duplex, first) {
          let bytes = first.toString();
          // As one that asks the backend first.
          setImmediate(() =>
            socket.on('data', (more: Buffer) => {
              bytes += more.toString();
              if (bytes.endsWith('more')) socket.end(`taken ${bytes}`);
            }),
          );
        },
      },
    });
    try {
      const upgrade = head(['GET /ws HTTP/1.1', 'Host: shop', 'Connection: Upgrade', 'Upgrade: websocket']);
      const socket = await dial(listener.url);
      const text = received(socket);
      socket.write(`${GET}${GET}${upgrade}frames\r\n\r\nmore`);
      await closeOf(socket);
      assert.match(text(), /taken frames\r\n\r\nmore$/);
    } finally {
      listener.close();
    }
  });
});
