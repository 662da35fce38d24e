import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { openCounter } from './counter.ts';
import { closeOf, dial, exchange, head } from './raw.ts';

const CALL = head(['GET /call HTTP/1.1', 'Host: shop']);
const HEALTH = head(['GET /health HTTP/1.1', 'Host: shop', 'Connection: close']);
const PATIENCE_MS = 60_000;

/**
 * A CONNECT as a whole, one whose body is still to come, and bytes that no parser reads: in each
 * case nobody watches the connection any more.
 */
const UNWATCHED = {
  CONNECT: head(['CONNECT a:443 HTTP/1.1', 'Host: a:443']),
  'CONNECT with half a body': `${head(['CONNECT a:443 HTTP/1.1', 'Host: a:443', 'Content-Length: 4'])}ab`,
  garbage: 'GARBAGE\r\n\r\n',
};

describe('a tunnel that is not opened', () => {
  for (const [what, bytes] of Object.entries(UNWATCHED).slice(0, 2))
    it(`${what} behind running calls ends them: none of them counts as running for ever`, {
      timeout: PATIENCE_MS,
    }, async () => {
      const calls = new EventEmitter();
      let running = 0;
      const counter = await openCounter([
        function hold(_req, res) {
          running += 1;
          res.once('close', () => {
            running -= 1;
            if (running === 0) calls.emit('over');
          });
          if (running === 3) calls.emit('begun');
        },
      ]);
      const socket = await dial(counter.url);
      const [begun, over] = [once(calls, 'begun'), once(calls, 'over')];
      socket.write(CALL.repeat(3));
      await begun;
      socket.write(bytes);
      await over;
      await closeOf(socket);
      counter.close();
    });

  for (const [what, bytes] of Object.entries(UNWATCHED))
    it(`${what}: the connection is given back, although its caller does not close`, {
      timeout: PATIENCE_MS,
    }, async () => {
      const counter = await openCounter([], { maxConnections: 1 });
      const { hostname, port } = new URL(counter.url);
      const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
      socket.on('error', () => undefined).resume();
      socket.write(bytes);
      await once(socket, 'end');
      // The only place of this listener is free again once somebody else is answered.
      let answer = '';
      while (answer === '') answer = await exchange(counter.url, [HEALTH]);
      assert.match(answer, /^HTTP\/1\.1 200 /);
      socket.destroy();
      counter.close();
    });
});
