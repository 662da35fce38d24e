import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import type { Response } from 'express';
import { httpResponseWriter } from '../../../src/adapters/http/response-writer.ts';
import type { Relayed, RelayOptions } from '../../../src/pipeline/call.ts';
import { rest } from '../../payments/settlement/virtual-time.ts';

const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

/** Relays a body to a client on a socket. */
async function relaying(body: PassThrough, sending?: RelayOptions['sending']) {
  const relayed = Promise.withResolvers<Relayed>();
  const received = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  const read: Buffer[] = [];
  const server = http.createServer((_request, response) => {
    response.once('close', left.resolve);
    // A second reader beside the pipe, like the one that keeps answers.
    if (sending !== undefined) body.on('data', (chunk: Buffer) => void read.push(chunk));
    httpResponseWriter(response as unknown as Response, 'r')
      .relay({ status: 200, headers: {}, body }, sending === undefined ? {} : { sending })
      .then(relayed.resolve, relayed.reject);
    received.resolve();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const ended = once(socket, 'close');
  let arrived = '';
  socket.on('data', (chunk) => {
    arrived += String(chunk);
  });
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const stop = async (): Promise<void> => {
    socket.destroy();
    server.close();
    await once(server, 'close');
  };
  const done = { relayed: relayed.promise, received: received.promise, left: left.promise, ended };
  return { ...done, read, socket, arrived: () => arrived, stop };
}

describe('the relay of an answer whose caller left', () => {
  it('reads it to its end, and leaves no timer', async () => {
    const body = new PassThrough();
    const call = await relaying(body);
    body.write('first');
    await once(call.socket, 'data');
    call.socket.destroy();
    await call.left;
    const before = timers();
    body.end('last');
    assert.deepEqual(await call.relayed, { kind: 'client_gone' });
    assert.ok(timers() <= before, 'no timer waits for the caller');
    await call.stop();
  });
});

describe('the relay of an answer that waits for `sending`', () => {
  const waiting = async (body: PassThrough) => {
    const asked = Promise.withResolvers<void>();
    const mark = Promise.withResolvers<void>();
    const call = await relaying(body, () => {
      asked.resolve();
      return mark.promise;
    });
    return { ...call, asked: asked.promise, mark };
  };

  it('sends nothing before it, and afterwards every byte once', async () => {
    const body = new PassThrough();
    const call = await waiting(body);
    body.write('first,');
    await call.asked;
    body.write('second,');
    await rest();
    assert.equal(call.arrived(), '');
    call.mark.resolve();
    body.end('last');
    assert.deepEqual(await call.relayed, { kind: 'finished' });
    await call.ended;
    assert.match(call.arrived(), /first,.*second,.*last/s);
    assert.equal(Buffer.concat(call.read).toString(), 'first,second,last');
    await call.stop();
  });

  for (const [when, early] of [
    ['ended before', true],
    ['ends while it waits', false],
  ] as const)
    it(`sends the head of an empty answer that ${when} after it`, async () => {
      const body = new PassThrough();
      if (early) body.end();
      const call = await waiting(body);
      if (!early) {
        await call.received;
        body.end();
      }
      await call.asked;
      await rest();
      assert.equal(call.arrived(), '');
      call.mark.resolve();
      assert.deepEqual(await call.relayed, { kind: 'finished' });
      await call.ended;
      assert.match(call.arrived(), /^HTTP\/1.1 200/);
      await call.stop();
    });

  it('reads on when the caller leaves while it waits, and sends nothing', async () => {
    const body = new PassThrough();
    const call = await waiting(body);
    body.write('first,');
    await call.asked;
    call.socket.destroy();
    body.end('last');
    assert.deepEqual(await call.relayed, { kind: 'client_gone' });
    assert.equal(Buffer.concat(call.read).toString(), 'first,last');
    call.mark.resolve();
    await call.stop();
  });
});
