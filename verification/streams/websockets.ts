/** Many WebSockets through the passthrough: what each holds, and how a drain ends them. */

import { once } from 'node:events';
import { residentBytes } from '../bench/meter.ts';
import type { Row } from './row.ts';
import { type Measured, mib } from './transfers.ts';

/** Handshakes at a time. */
const BATCH = 50;
/** Until all of them are closed, from the begin of the drain, milliseconds. */
const MOST_MS = 2_000;

/** Opens `count` WebSockets, sends a message over each, drains, and sees how they end. */
export async function webSocketRows(
  gateway: Measured & { readonly drain: () => Promise<unknown> },
  count: number,
): Promise<readonly Row[]> {
  const before = residentBytes(gateway.pid);
  const sockets: WebSocket[] = [];
  for (let opened = 0; opened < count; opened += BATCH)
    sockets.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(BATCH, count - opened) }, () => openSocket(gateway.baseUrl)),
      )),
    );
  const startedAt = performance.now();
  const echoes = await Promise.all(sockets.map((socket, index) => echo(socket, `message ${index}`)));
  const echoMs = performance.now() - startedAt;
  const right = echoes.filter((text, index) => text === `message ${index}`).length;
  const growth = residentBytes(gateway.pid) - before;
  const drainedAt = performance.now();
  const closed = Promise.all(sockets.map((socket) => once(socket, 'close'))).then(() => performance.now());
  await gateway.drain();
  const ms = (await closed) - drainedAt;
  return [
    {
      what: `${count} WebSockets open at once`,
      found: `${right} echoes in ${echoMs.toFixed(0)} ms, memory +${mib(growth)}, ${(growth / count / 1_024).toFixed(0)} KiB each`,
      goal: `${count} echoes`,
      met: right === count,
    },
    {
      what: 'their end when the gateway drains',
      found: `all within ${ms.toFixed(0)} ms`,
      goal: `all within ${MOST_MS} ms`,
      met: ms <= MOST_MS,
    },
  ];
}

function openSocket(baseUrl: string): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${baseUrl.replace('http', 'ws')}/chat`);
    socket.addEventListener('open', () => resolve(socket), { once: true });
    socket.addEventListener('error', () => reject(new Error('a WebSocket was refused')), { once: true });
  });
}

function echo(socket: WebSocket, text: string): Promise<string> {
  return new Promise((resolve) => {
    socket.addEventListener('message', ({ data }) => resolve(String(data)), { once: true });
    socket.send(text);
  });
}
