import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { openBareListener } from '../http/bare-listener.ts';
import { closeOf, dial, head, received } from '../http/raw.ts';

const CALL = head(['POST /call HTTP/1.1', 'Host: shop', 'Content-Length: 0']);
const NO_REQUEST = 'this is no request\r\n\r\n';

/** A listener at which the first call waits; `begin` resolves to what lets it begin. */
async function openWaiting() {
  const begin = Promise.withResolvers<() => void>();
  const listener = await openBareListener([], {
    loadShedder(req, res, goOn) {
      begin.resolve(() => goOn(req, res));
      return 'waits';
    },
  });
  return { ...listener, begin: begin.promise };
}

describe('a call that waits before Express sees it', () => {
  it('is served when it begins, and its connection goes on', async () => {
    const listener = await openWaiting();
    const socket = await dial(listener.url);
    try {
      const text = received(socket);
      socket.write(CALL);
      const begin = await listener.begin;
      assert.deepEqual(listener.served, []);
      const answered = once(socket, 'data');
      begin();
      await answered;
      assert.match(text(), /^HTTP\/1\.1 200 /);
      assert.doesNotMatch(text(), /connection: close/i);
    } finally {
      socket.destroy();
      listener.close();
    }
  });

  it('is answered before what follows it, which is no request and ends the connection', async () => {
    const listener = await openWaiting();
    const socket = await dial(listener.url);
    try {
      const text = received(socket);
      const ended = closeOf(socket);
      socket.write(CALL + NO_REQUEST);
      (await listener.begin)();
      await ended;
      assert.deepEqual(
        [listener.served, text().match(/HTTP\/1\.1 \d+/g)],
        [['POST /call'], ['HTTP/1.1 200', 'HTTP/1.1 400']],
      );
    } finally {
      listener.close();
    }
  });
});
