/** Raw bytes to a listener and what comes back, for the specs of HTTP. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A connection whose errors do not end the test: the other side may cut it. */
export async function dial(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** What a connection has sent, from now on. */
export function received(socket: Socket): () => string {
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  return () => text;
}

/** Resolves at the end of a connection, in order or not: a writer may get a broken pipe. */
export function closeOf(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
}

/** Everything that answers these bytes until the connection ends. */
export async function exchange(url: string, chunks: readonly (string | Buffer)[]): Promise<string> {
  const socket = await dial(url);
  const text = received(socket);
  for (const chunk of chunks) socket.write(chunk);
  await closeOf(socket);
  return text();
}

/** The status of the first answer. */
export const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);
/** Code and details of an error envelope. */
export function envelopeOf(answer: string): Readonly<Record<string, unknown>> {
  const { code, details } = JSON.parse(answer.split('\r\n\r\n')[1] ?? '') as { code: string; details: object };
  return { code, ...details };
}

/** The head of a request. */
export const head = (lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`;
/** The head of a call. */
export const invoke = (id: string, lines: readonly string[]): string =>
  head([`POST /api/resources/${id}/invoke HTTP/1.1`, 'Host: shop', 'Content-Type: application/json', ...lines]);

/** Writes 1 KiB chunks until the peer stops it; resolves with the bytes written and the answer. */
export async function pourUntilAnswered(
  socket: Socket,
): Promise<{ readonly written: number; readonly answer: string }> {
  const chunk = Buffer.alloc(1_024, 0x20);
  let written = 0;
  const text = received(socket);
  while (text() === '' && written < 4 * 1024 * 1024 && !socket.destroyed) {
    socket.write(`400\r\n${chunk.toString('latin1')}\r\n`);
    written += chunk.length;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { written, answer: text() };
}
