/** HTTP servers of the local world: what backends, facilitators and nodes of tests listen with. */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

/** An HTTP server on 127.0.0.1. */
export interface HttpServer {
  readonly url: string;
  /** Ends also the connections whose answers are still running. */
  stop(): Promise<void>;
}

/** One request, read completely, and its answer. */
export interface HttpExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
}

/**
 * Serves on `port`, default a free one. What `answer` throws breaks the connection. Without
 * `upgrade` an upgrade is answered as a request.
 */
export async function serveHttp(
  answer: (exchange: HttpExchange) => void | Promise<void>,
  port = 0,
  upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void,
): Promise<HttpServer> {
  const server = createServer((request, response) => {
    serve(request, response).catch(() => resetConnection(response));
  });
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    await answer({ request, response, body: await bytesOf(request) });
  };
  // Upgraded connections are no longer the server's: it would not end them.
  const upgraded = new Set<Duplex>();
  if (upgrade !== undefined)
    server.on('upgrade', (request, socket, head) => {
      upgraded.add(socket);
      socket.once('close', () => upgraded.delete(socket));
      upgrade(request, socket, head);
    });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      for (const socket of upgraded) socket.destroy();
      await closed;
    },
  };
}

/** The whole body of a message. */
export async function bytesOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Answers with a JSON document. */
export function answerJson(response: ServerResponse, status: number, body: unknown): void {
  answerBytes(response, status, 'application/json', Buffer.from(JSON.stringify(body)));
}

/** Answers with bytes of this media type. */
export function answerBytes(response: ServerResponse, status: number, type: string, body: Buffer): void {
  response.writeHead(status, { 'content-type': type, 'content-length': body.length }).end(body);
}

/** Breaks the connection instead of an answer. */
export function resetConnection(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
}
