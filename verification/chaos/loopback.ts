import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An HTTP server of the world. */
export interface Loopback {
  readonly url: string;
  stop(): Promise<void>;
}

/** One request, read completely. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
}

/** Serves on a free port of 127.0.0.1. What `answer` throws breaks the connection. */
export async function serveLoopback(answer: (exchange: Exchange) => Promise<void>): Promise<Loopback> {
  const server = createServer((request, response) => {
    serve(request, response).catch(() => cut(response));
  });
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    await answer({ request, response, body: Buffer.concat(chunks) });
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A whole JSON answer. */
export function answerJson(response: ServerResponse, status: number, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length }).end(bytes);
}

/** Breaks the connection instead of an answer. */
export function cut(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
}
