/** The backend of the measurements: it streams as long as it is asked to, and echoes WebSockets. */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { echoWebSocket } from '../../spec/support/websocket-echo.ts';

export interface Merchant {
  readonly url: string;
  stop(): Promise<void>;
}

const CHUNK = Buffer.alloc(65_536, 0x61);

/** Starts it on a free port of 127.0.0.1. */
export async function startMerchant(): Promise<Merchant> {
  const sockets = new Set<Duplex>();
  const server = createServer((request, response) => void serve(request, response));
  server.on('upgrade', (request, socket, head) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    echoWebSocket(request, socket, head);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.close();
      server.closeAllConnections();
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://merchant');
  const number = (name: string, usual: number): number => Number(searchParams.get(name) ?? usual);
  if (pathname === '/down') await send(response, number('bytes', 0), number('everyMs', 0));
  else if (pathname === '/up') response.end(String(await count(request)));
  else if (pathname === '/events') await sendEvents(response, number('seconds', 1), number('everyMs', 200));
  else if (pathname.startsWith('/reports/')) response.end('{"report":true}');
  else response.end('<!doctype html><title>Shop</title>');
}

/** `everyMs` between chunks of 64 KiB; 0 sends as fast as they are read. */
async function send(response: ServerResponse, bytes: number, everyMs: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes });
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  for (let left = bytes; left > 0 && !response.destroyed; left -= CHUNK.length) {
    const more = response.write(left >= CHUNK.length ? CHUNK : CHUNK.subarray(0, left));
    if (!more) await once(response, 'drain', { signal: gone.signal }).catch(() => undefined);
    // Not behind the last one: its connection may have the next request already.
    if (everyMs > 0 && left > CHUNK.length) await delay(everyMs);
  }
  response.end();
}

async function count(request: IncomingMessage): Promise<number> {
  let bytes = 0;
  for await (const chunk of request) bytes += (chunk as Buffer).length;
  return bytes;
}

/** Server-sent events whose data is the time at which they were sent, milliseconds. */
async function sendEvents(response: ServerResponse, seconds: number, everyMs: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const end = Date.now() + seconds * 1_000;
  while (Date.now() < end && !response.destroyed) {
    response.write(`data: ${Date.now()}\n\n`);
    await delay(everyMs);
  }
  response.end();
}
