/** The cheapest HTTP server that Node can be: it shares the machine with what is measured. */

import { createServer } from 'node:net';
import { Framer, type Message } from './framing.ts';

/** Answers one request with a status and a JSON text. */
export type Answering = (message: Message, bytes: Buffer) => { readonly status: number; readonly json: string };

/** Listens on 127.0.0.1 until the process ends; no connection is closed for being idle. */
export function serveRaw(port: number, answer: Answering): void {
  const server = createServer({ noDelay: true }, (socket) => {
    const framer = new Framer();
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk: Buffer) =>
      framer.take(chunk, (message, bytes) => {
        const { status, json } = answer(message, bytes);
        const length = Buffer.byteLength(json);
        socket.write(
          `HTTP/1.1 ${status} OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${json}`,
        );
      }),
    );
  });
  server.listen(port, '127.0.0.1', 4_096);
}
