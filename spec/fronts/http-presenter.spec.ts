import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import type { Response } from 'express';
import type { Relayed } from '../../src/call.ts';
import { httpPresenter } from '../../src/fronts/http-presenter.ts';

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

describe('the relay of an answer whose reader left', () => {
  it('reads it to its end, and leaves no timer behind', async () => {
    const body = new PassThrough();
    const relayed = Promise.withResolvers<Relayed>();
    const left = Promise.withResolvers<void>();
    const server = http.createServer((_request, response) => {
      response.once('close', left.resolve);
      const answer = { status: 200, headers: {}, body };
      httpPresenter(response as unknown as Response, 'r')
        .relay(answer, {})
        .then(relayed.resolve, relayed.reject);
      body.write('first');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(socket, 'data');
    socket.destroy();
    await left.promise;
    const before = timers();
    body.end('last');
    assert.deepEqual(await relayed.promise, { kind: 'client_gone' });
    assert.ok(timers() <= before, 'nothing waits for a reader who is gone');
    server.close();
    await once(server, 'close');
  });
});
