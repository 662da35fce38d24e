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

/** What a connection has said so far, from now on. */
export function listen(socket: Socket): () => string {
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  return () => text;
}

/**
 * The end of a connection, in order or not: who still writes when it is cut hears of a broken pipe.
 */
export function closeOf(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
}

/** Everything that is said to these bytes until the connection ends. */
export async function exchange(url: string, chunks: readonly (string | Buffer)[]): Promise<string> {
  const socket = await dial(url);
  const said = listen(socket);
  for (const chunk of chunks) socket.write(chunk);
  await closeOf(socket);
  return said();
}

/** The head of a request. */
export const head = (lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`;
/** The head of a call. */
export const invoke = (id: string, lines: readonly string[]): string =>
  head([`POST /api/resources/${id}/invoke HTTP/1.1`, 'Host: shop', 'Content-Type: application/json', ...lines]);

/**
 * Writes 1 KiB chunks until the peer stops it; resolves with the bytes written and the first
 * answer.
 */
export async function pourUntilAnswered(
  socket: Socket,
): Promise<{ readonly written: number; readonly answer: string }> {
  const chunk = Buffer.alloc(1_024, 0x20);
  let written = 0;
  const said = listen(socket);
  while (said() === '' && written < 4 * 1024 * 1024 && !socket.destroyed) {
    socket.write(`400\r\n${chunk.toString('latin1')}\r\n`);
    written += chunk.length;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { written, answer: said() };
}
