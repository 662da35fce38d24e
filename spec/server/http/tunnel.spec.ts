import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import type { Response } from 'express';
import { openBareListener } from './bare-listener.ts';
import { closeOf, dial, exchange, head, received } from './raw.ts';

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
