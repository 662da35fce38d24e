import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { readJsonBody } from '../../../src/server/http/request.ts';
import { standStill } from '../../support/stand-still.ts';
import { type BareListener, openBareListener } from '../http/bare-listener.ts';

/** How long the head of a request may take here, and between two checks of that, milliseconds. */
const HEAD_MS = 300;
const LOOK_MS = 50;
/** Longer than the least standstill. */
const STOPPED_MS = 2_000;
const HEAD = 'POST / HTTP/1.1\r\nhost: shop\r\ncontent-type: application/json\r\ncontent-length: 2\r\n';

describe('a request that is late', () => {
  let listener: BareListener;
  let socket: Socket;
  let answer: string;
  beforeEach(async () => {
    const read = async (...[req, res, next]: Parameters<import('express').RequestHandler>): Promise<void> => {
      await readJsonBody(req, res);
      next();
    };
    listener = await openBareListener([read], { headersTimeout: HEAD_MS, connectionsCheckingInterval: LOOK_MS });
    socket = connect(Number(new URL(listener.url).port), '127.0.0.1');
    await once(socket, 'connect');
    while ((await listener.connections()) === 0) await pause(1);
    answer = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      answer += chunk;
    });
  });
  afterEach(() => {
    socket.destroy();
    listener.close();
  });
  const body = (): unknown => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')));

  it('because the process stood still gets 503 and may be sent again', async () => {
    socket.write(`${HEAD}\r\n{}`);
    standStill(STOPPED_MS);
    await once(socket, 'end');
    assert.match(answer, /^HTTP\/1\.1 503 Service Unavailable\r\n/);
    assert.match(answer, /\r\nretry-after: 1\r\n/);
    const { code, retryable } = body() as Readonly<Record<string, unknown>>;
    assert.deepEqual([code, retryable, listener.served], ['GATEWAY_BUSY', true, []]);
  });

  it('by itself gets 400', async () => {
    socket.write(HEAD);
    await once(socket, 'end');
    assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/);
    assert.deepEqual((body() as { readonly details: unknown }).details, { reason: 'request_timeout' });
  });
});
