import { randomUUID } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Express } from 'express';
import { errorEnvelope, GatewayError } from './errors.ts';

/** Socket bounds of CONTRACT 3. Two proofs of 8 KiB must fit into the head. */
const LIMITS = {
  maxHeaderSize: 32_768,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 2_000,
} as const;
const MAX_HEADERS = 100;

/** A listener with its address once it listens. */
export interface Listener {
  readonly server: http.Server;
  listen(host: string, port: number): Promise<AddressInfo>;
  /** Stops accepting and closes idle connections; running requests finish. */
  stop(): void;
  /** Stops, and ends whatever is still open. */
  destroy(): void;
}

/**
 * An HTTP server for an Express app. Requests and responses are born with Express's own prototypes, so that Express need not change
 * them for every request, which is what makes it slow. `closing` is asked when a head is written.
 */
export function createListener(app: Express, closing: () => boolean): Listener {
  closeConnectionsWhen(app, closing);
  const server = http.createServer(
    {
      ...LIMITS,
      IncomingMessage: bornAs<typeof http.IncomingMessage>(http.IncomingMessage, app.request),
      ServerResponse: bornAs<typeof http.ServerResponse>(http.ServerResponse, app.response),
    },
    app,
  );
  server.maxHeadersCount = MAX_HEADERS;
  // The body reader decides when to invite the body, so an unwanted one is never sent.
  server.on('checkContinue', app);
  server.on('checkExpectation', app);
  server.on('clientError', answerClientError);
  return {
    server,
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen({ host, port }, () => {
          server.off('error', reject);
          resolve(server.address() as AddressInfo);
        });
      }),
    stop() {
      server.close();
      server.closeIdleConnections();
    },
    destroy() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A class whose instances have `prototype` from birth; Express sets the same one later, which then changes nothing. */
function bornAs<C extends new (...given: never[]) => object>(Base: C, prototype: object): C {
  function Born(...given: unknown[]): object {
    return Reflect.construct(Base, given, Born);
  }
  Born.prototype = prototype;
  Object.setPrototypeOf(Born, Base);
  return Born as unknown as C;
}

/** While draining every answer says `Connection: close`, decided when its head is written, not when its request came. */
function closeConnectionsWhen(app: Express, closing: () => boolean): void {
  const { writeHead } = http.ServerResponse.prototype;
  Object.defineProperty(app.response, 'writeHead', {
    value: function writeHeadOrClose(this: http.ServerResponse, ...head: Parameters<typeof writeHead>) {
      if (closing()) this.shouldKeepAlive = false;
      return writeHead.apply(this, head);
    },
  });
}

/** Requests that Node's parser refuses still get the one envelope, when the socket can take it. */
function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const reason = CLIENT_ERRORS[error.code ?? ''] ?? 'malformed_request';
  const refusal = new GatewayError('INPUT_INVALID', {
    message: 'This is not a request we can read.',
    details: { reason },
  });
  const requestId = `req_${randomUUID()}`;
  const body = JSON.stringify(errorEnvelope(refusal, requestId));
  socket.end(
    `HTTP/1.1 ${refusal.status} Bad Request\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nx-request-id: ${requestId}\r\ncache-control: no-store\r\n` +
      `connection: close\r\n\r\n${body}`,
  );
}

const CLIENT_ERRORS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};
