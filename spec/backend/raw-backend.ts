/** A backend of raw bytes, for the specs of the exchange and of the attacks on it. */

import { EventEmitter, once } from 'node:events';
import { createServer, type Socket } from 'node:net';

/** One request as it was sent. */
export interface RawRequest {
  /** Request line and header block, without the empty line. */
  readonly head: string;
  readonly body: Buffer;
  /** Which connection it came on, from 1. */
  readonly connection: number;
  /** Which request of that connection it is, from 1. */
  readonly nth: number;
}

/** Answers one request with any bytes. */
export type Script = (socket: Socket, request: RawRequest) => void;

export interface RawBackend {
  readonly origin: string;
  readonly requests: readonly RawRequest[];
  /** Connections accepted so far. */
  accepted(): number;
  /** Connections open now. */
  open(): number;
  /** Resolves once at most `count` connections are open. */
  settledTo(count: number): Promise<void>;
  /** Resolves with the next request. */
  nextRequest(): Promise<RawRequest>;
  /** Closes every open connection in order, and still accepts new ones. */
  closeAll(): void;
  close(): Promise<void>;
}

/** `port` 0 takes a free one. */
export async function rawBackend(script: Script, port = 0): Promise<RawBackend> {
  const sockets = new Set<Socket>();
  const requests: RawRequest[] = [];
  const signals = new EventEmitter();
  let accepted = 0;
  const server = createServer((socket) => {
    accepted += 1;
    sockets.add(socket);
    // The tests break connections on purpose.
    socket.on('error', () => {});
    socket.once('close', () => {
      sockets.delete(socket);
      signals.emit('closed');
    });
    serve(socket, accepted, (request) => {
      requests.push(request);
      script(socket, request);
      signals.emit('request', request);
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no TCP address');
  return {
    origin: `http://127.0.0.1:${address.port}`,
    requests,
    accepted: () => accepted,
    open: () => sockets.size,
    async settledTo(count) {
      while (sockets.size > count) await once(signals, 'closed');
    },
    async nextRequest() {
      const [request] = await once(signals, 'request');
      return request;
    },
    closeAll() {
      for (const socket of sockets) socket.end();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Cuts the stream into requests: a head, then as many bytes as Content-Length states. */
function serve(socket: Socket, connection: number, deliver: (request: RawRequest) => void): void {
  let pending = Buffer.alloc(0);
  let nth = 0;
  socket.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    for (;;) {
      const end = pending.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = pending.toString('latin1', 0, end);
      const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
      if (pending.length < end + 4 + length) return;
      nth += 1;
      const body = pending.subarray(end + 4, end + 4 + length);
      pending = pending.subarray(end + 4 + length);
      deliver({ head, body, connection, nth });
    }
  });
}

/** Writes a well-formed answer in one piece: two small writes would wait 40 ms for each other. */
export function answer(socket: Socket, body: string | Uint8Array = 'ok', head = 'HTTP/1.1 200 OK'): void {
  socket.cork();
  socket.write(`${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`);
  socket.write(body);
  socket.uncork();
}
