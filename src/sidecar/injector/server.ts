/** The TLS server of an injector: its connections, their limits, the renewal of certificates. */

import { constants } from 'node:crypto';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import { listenOn } from '../../server/http/listen-on.ts';
import { onceClosed } from '../../server/http/once-closed.ts';
import { clientProblem, type Identity } from './identity.ts';
import { type RefusalListener, type RefusalStatus, refusalText, reviewHandler } from './review-handler.ts';

/** A whole request, from its first byte to its last, milliseconds. */
const REQUEST_MS = 2_000;
/** How often that is looked at, milliseconds. */
const LOOK_EVERY_MS = 250;
/** API servers keep connections open between reviews, milliseconds. */
const KEEP_ALIVE_MS = 120_000;
/** Most connections: a cluster has a handful of API servers, each with a few. */
const MAX_CONNECTIONS = 512;
/** The first byte of a TLS handshake. */
const HANDSHAKE = 0x16;
/** Running reviews take milliseconds; what lasts longer is cut at the end. */
const FINISH_MS = 5_000;

interface Serving {
  readonly identity: Identity;
  /** PEM of the authorities whose clients may call; undefined: any client may. */
  readonly clientAuthority: string | undefined;
}

interface InjectorServerParts {
  readonly serving: Serving;
  readonly clientName?: string | undefined;
  /** Answers the bytes of a review. @throws MalformedReview */
  readonly answer: (body: Buffer) => string;
  readonly onRefused: RefusalListener;
  /** A connection that was no TLS, whose handshake failed, or that was one too many. */
  readonly onHandshakeFailed: (message: string) => void;
  readonly maxConnections?: number;
}

export function createInjectorServer(parts: InjectorServerParts) {
  const { clientName, answer, onRefused, onHandshakeFailed } = parts;
  let { serving } = parts;
  let closing = false;
  const handle = reviewHandler({
    answer,
    refuseClient: ({ socket }) =>
      serving.clientAuthority === undefined ? undefined : clientProblem(socket as TLSSocket, clientName),
    closing: () => closing,
    onRefused,
  });
  const server = https.createServer(
    {
      ...contextOf(serving),
      // Those without a certificate, or with a foreign one, are told so: an alert of TLS says less.
      requestCert: serving.clientAuthority !== undefined,
      rejectUnauthorized: false,
      handshakeTimeout: REQUEST_MS,
      headersTimeout: REQUEST_MS,
      requestTimeout: REQUEST_MS,
      connectionsCheckingInterval: LOOK_EVERY_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    handle,
  );
  server.maxConnections = parts.maxConnections ?? MAX_CONNECTIONS;
  keepRoom(server, server.maxConnections);
  server.on('drop', () => onHandshakeFailed(`There are ${server.maxConnections} connections already.`));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Gone, or refused before. On a connection that API servers hold ready an answer to nothing
    // could be taken for the answer to the request that they are just sending.
    if (error.code?.startsWith('ERR_SSL') === true) onHandshakeFailed(error.message);
    if (error.code === 'ECONNRESET' || !socket.writable || (socket as TLSSocket).bytesRead === 0) {
      socket.destroy();
      return;
    }
    const [status, message] = refusalOf(error);
    onRefused(status, message);
    socket.end(rawRefusal(status, message));
  });
  server.on('secureConnection', (socket) => {
    // A signature that is not right stays among the errors of OpenSSL, where the next read takes it
    // for its own and cuts the connection before the refusal. Reading the certificate empties them.
    if (!socket.authorized) socket.getPeerX509Certificate();
  });
  server.on('tlsClientError', (error) => onHandshakeFailed(error.message));
  tellPlainClients(server, onHandshakeFailed);
  return {
    listen: (host: string | undefined, port: number) =>
      listenOn(server, { ...(host === undefined ? {} : { host }), port }),
    /**
     * Uses other certificates from the next connection on. Connections that are open go on, unless
     * other clients are trusted.
     */
    renew(renewed: Serving): void {
      const isSameTrust = renewed.clientAuthority === serving.clientAuthority;
      serving = renewed;
      server.setSecureContext(contextOf(renewed));
      // Clients of a connection were judged when it was opened.
      if (!isSameTrust) server.closeIdleConnections();
    },
    /** Answers from now on end their connections. */
    beginClosing(): void {
      closing = true;
    },
    /** Stops to listen; resolves when what runs has been answered. */
    close: () =>
      new Promise<void>((resolve) => {
        closing = true;
        const cut = setTimeout(() => server.closeAllConnections(), FINISH_MS);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}

function contextOf({ identity, clientAuthority }: Serving): SecureContextOptions {
  return {
    cert: identity.certificate,
    key: identity.key,
    ...(clientAuthority === undefined ? {} : { ca: clientAuthority }),
    minVersion: 'TLSv1.2',
    // A session that is resumed would be judged by the certificates of an earlier day.
    secureOptions: constants.SSL_OP_NO_TICKET,
  };
}

/**
 * Closes the connections that are idle for longest when the last place is taken: clients that only
 * hold connections open must not keep API servers out.
 */
function keepRoom(server: https.Server, places: number): void {
  let open = 0;
  // In the order in which they became idle.
  const idle = new Set<Socket>();
  const makeRoom = (): void => {
    const [longest] = idle;
    if (open >= places && longest !== undefined) longest.destroy();
  };
  server.on('connection', (socket) => {
    open += 1;
    socket.once('close', () => {
      open -= 1;
    });
    makeRoom();
  });
  const rests = (socket: Socket): void => {
    if (socket.destroyed) return;
    idle.add(socket);
    makeRoom();
  };
  server.on('secureConnection', (socket) => {
    socket.once('close', () => idle.delete(socket));
    rests(socket);
  });
  server.on('request', ({ socket }, res) => {
    idle.delete(socket);
    onceClosed(res, () => rests(socket));
  });
}

/** What a fault of a connection is called. */
function refusalOf({ code }: NodeJS.ErrnoException): readonly [status: RefusalStatus, message: string] {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return [408, `The request took longer than ${REQUEST_MS} ms to arrive.`];
  return [400, 'What arrived is no HTTP/1.1 request.'];
}

function rawRefusal(status: RefusalStatus, message: string): string {
  const text = refusalText(status, message);
  const length = Buffer.byteLength(text);
  return `HTTP/1.1 ${status} \r\ncontent-type: application/json\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n${text}`;
}

/**
 * Tells a client that speaks HTTP to the TLS port what is wrong: it would wait for an answer to
 * bytes that a handshake refuses. The first byte shows it.
 */
function tellPlainClients(server: https.Server, onHandshakeFailed: (message: string) => void): void {
  const secure = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const drop = (): void => {
      socket.destroy();
    };
    socket.setTimeout(REQUEST_MS, drop).once('error', drop);
    socket.once('data', (first: Buffer) => {
      socket.setTimeout(0).off('timeout', drop).off('error', drop);
      if (first[0] === HANDSHAKE) {
        // The handshake reads again what was read here.
        socket.pause().unshift(first);
        for (const listener of secure) Reflect.apply(listener, server, [socket]);
        return;
      }
      const message = 'Plain HTTP was sent to a port that speaks TLS: use https.';
      onHandshakeFailed(message);
      socket.on('error', drop).end(rawRefusal(400, message));
    });
  });
}
