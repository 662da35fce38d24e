import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { noteBodyRelayed, readJsonBytes } from '../../../src/server/http/request.ts';
import { type BareListener, openBareListener } from './bare-listener.ts';
import { closeOf, dial, envelopeOf, exchange, head, received, statusOf } from './raw.ts';

const REQUEST_MS = 200;

describe('bodies of a listener that relays', () => {
  let listener: BareListener;
  before(async () => {
    listener = await openBareListener(
      [
        async function read(req, res, next) {
          if (req.url === '/read') await readJsonBytes(req, res);
          if (req.url !== '/relayed') return next();
          noteBodyRelayed(req);
          req.pipe(res);
        },
      ],
      { relay: { idleTimeoutMs: 1_000, upgrade: undefined }, requestTimeout: REQUEST_MS },
    );
  });
  after(() => listener.close());

  it('end in time where they are read here', async () => {
    const slow = head(['POST /read HTTP/1.1', 'Host: a', 'Content-Type: application/json', 'Content-Length: 9']);
    const answer = await exchange(listener.url, [`${slow}{`]);
    assert.equal(statusOf(answer), 400);
    assert.equal(envelopeOf(answer)['reason'], 'incomplete_body');
  });

  it('may take longer where they are relayed, beside an answer that has begun', async () => {
    const socket = await dial(listener.url);
    const text = received(socket);
    socket.write(head(['POST /relayed HTTP/1.1', 'Host: a', 'Connection: close', 'Content-Length: 2']));
    socket.write('a');
    while (!text().includes('a\r\n')) await once(socket, 'data');
    await delay(2 * REQUEST_MS);
    socket.write('b');
    await closeOf(socket);
    assert.match(text(), /\r\n1\r\nb\r\n0\r\n\r\n$/);
  });

  it('ask for no upgrade that nothing takes', async () => {
    const lines = ['GET / HTTP/1.1', 'Host: a', 'Connection: Upgrade, close', 'Upgrade: websocket'];
    assert.equal(statusOf(await exchange(listener.url, [head(lines)])), 200);
  });
});
