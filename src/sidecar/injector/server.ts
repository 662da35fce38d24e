/** The TLS server of an injector: its connections, their limits, the renewal of certificates. */

import { constants, createPrivateKey, X509Certificate } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { createSecureContext, type SecureContextOptions, type TLSSocket } from 'node:tls';
import { onceClosed } from '../../server/http/access-record.ts';
import { listenOn } from '../../server/http/respond.ts';
import { MalformedReview } from './review.ts';

/** A whole request, from its first byte to its last, milliseconds. */
const REQUEST_MS = 2_000;
/** How often the time of requests is checked, milliseconds. */
const LOOK_EVERY_MS = 250;
/** API servers keep connections open between reviews, milliseconds. */
const KEEP_ALIVE_MS = 120_000;
/** Most connections: a cluster has a handful of API servers, each with a few. */
const MAX_CONNECTIONS = 512;
/** The first byte of a TLS handshake. */
const HANDSHAKE = 0x16;
/** `close` cuts reviews that last longer; a review takes milliseconds. */
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
      // Clients without a trusted certificate get an answer of HTTP: an alert of TLS says less.
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
    // A client that is gone or was refused gets no answer, nor one that sent nothing: an API server
    // could take that answer for the answer to the request that it is just sending.
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
    // The error of a wrong signature stays in OpenSSL's queue, where the next read takes it for its
    // own and cuts the connection before the refusal. Reading the certificate empties the queue.
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
    /** Stops listening; resolves when running reviews have been answered, or were cut. */
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

/** The refusal for a fault of a connection. */
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
 * Answers a client that speaks plain HTTP to the TLS port with its mistake: it would wait for an
 * answer to bytes that a handshake refuses. The first byte shows plain HTTP.
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
        // Puts the bytes back for the handshake.
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

/** The path of the webhook configuration. API servers add `?timeout=5s`. */
const REVIEW_PATH = '/mutate';
/** Longest body, bytes: a pod may be as large as the store of the API server allows. */
export const MAX_BODY_BYTES = 3 * 1024 * 1024;
/** Bodies that are held at a time, bytes; a usual pod has less than 20 kB. */
const MAX_HELD_BYTES = 8 * 1024 * 1024;
/** How long the rest of a refused body is read and thrown away, milliseconds. */
const DISCARD_MS = 1_000;
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

/** The reasons of `metav1.Status`, by HTTP status. */
const REASONS = {
  400: 'BadRequest',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  408: 'Timeout',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  500: 'InternalError',
  503: 'ServiceUnavailable',
} as const;
type RefusalStatus = keyof typeof REASONS;

interface HandlerParts {
  /** Answers the bytes of a review. @throws MalformedReview */
  readonly answer: (body: Buffer) => string;
  /** Why this client may not call; undefined: it may. */
  readonly refuseClient: (req: IncomingMessage) => string | undefined;
  /** Whether connections end with their answer. */
  readonly closing: () => boolean;
  /** A request got no answer of admission. */
  readonly onRefused: RefusalListener;
}

/** `fault`: the thrown error, where it is a bug. */
export type RefusalListener = (status: RefusalStatus, message: string, fault?: unknown) => void;

/** A refusal as API servers read it: they show the message to the user who creates the pod. */
function refusalText(status: RefusalStatus, message: string): string {
  const reason = REASONS[status];
  return JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    code: status,
  });
}

function reviewHandler({ answer, refuseClient, closing, onRefused }: HandlerParts): RequestListener {
  let held = 0;
  return function handleReview(req, res) {
    if (closing()) res.setHeader('connection', 'close');
    const refuse: RefusalListener = (status, message, fault) => {
      onRefused(status, message, fault);
      writeRefusal(req, res, status, message);
    };
    const stranger = refuseClient(req);
    if (stranger !== undefined) {
      refuse(403, stranger);
      return;
    }
    const refusal = refusalOfHead(req, res);
    if (refusal !== undefined) {
      refuse(...refusal);
      return;
    }

    const chunks: Buffer[] = [];
    let length = 0;
    const release = (): void => {
      held -= length;
      length = 0;
      chunks.length = 0;
      req.off('data', take);
      req.off('end', conclude);
    };
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      held += chunk.length;
      chunks.push(chunk);
      if (length <= MAX_BODY_BYTES && held <= MAX_HELD_BYTES) return;
      const isTooLong = length > MAX_BODY_BYTES;
      release();
      if (isTooLong) refuse(413, TOO_LONG);
      else refuse(503, 'Too many reviews at a time: the memory for their bodies is used up.');
    };
    const conclude = (): void => {
      const body = Buffer.concat(chunks, length);
      release();
      try {
        send(res, 200, answer(body));
      } catch (error) {
        if (error instanceof MalformedReview) refuse(400, error.message);
        else refuse(500, 'The injector failed; its log says why.', error);
      }
    };
    req.on('data', take);
    req.on('end', conclude);
    req.once('close', release);
  };
}

const TOO_LONG = `The body is longer than ${MAX_BODY_BYTES} bytes; no pod is.`;

/** Refuses faults of the head before the body is read; undefined: it has none. */
function refusalOfHead({ url = '/', method, headers }: IncomingMessage, res: ServerResponse): Refusal | undefined {
  if (url.split('?', 1)[0] !== REVIEW_PATH) return [404, `Reviews are answered at ${REVIEW_PATH} only.`];
  if (method !== 'POST') {
    res.setHeader('allow', 'POST');
    return [405, `Reviews are sent to ${REVIEW_PATH} with POST.`];
  }
  if (!JSON_TYPE.test(headers['content-type'] ?? '') || headers['content-encoding'] !== undefined)
    return [415, 'The body must be application/json without content encoding.'];
  if (Number(headers['content-length'] ?? 0) > MAX_BODY_BYTES) return [413, TOO_LONG];
  return undefined;
}

type Refusal = readonly [status: RefusalStatus, message: string];

function send(res: ServerResponse, status: number, text: string): void {
  res.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text);
}

/**
 * Writes a refusal. A body that is still on its way is thrown away for a while first: a connection
 * that is closed under a writing client takes the answer with it.
 */
function writeRefusal(req: IncomingMessage, res: ServerResponse, status: RefusalStatus, message: string): void {
  const text = refusalText(status, message);
  if (req.complete) {
    send(res, status, text);
    return;
  }
  res.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    connection: 'close',
  });
  // The whole answer goes out here; only the end of the response waits.
  res.write(text);
  const end = (): void => {
    clearTimeout(timer);
    res.end();
  };
  const timer = setTimeout(end, DISCARD_MS).unref();
  req.once('end', end).once('close', end).resume();
}

/** A certificate that can be served, with its key. */
export interface Identity {
  /** PEM; the leaf first, then whatever leads to its authority. */
  readonly certificate: string;
  readonly key: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/**
 * Reads `tls.crt` and `tls.key`.
 * @throws Error that names a fault which API servers would refuse; it quotes nothing of the key
 */
export function readIdentity(certificate: string, key: string, now: number): Identity {
  const leaf = leafOf(certificate);
  let isPair: boolean;
  try {
    isPair = leaf.checkPrivateKey(createPrivateKey(key));
  } catch {
    throw new Error('tls.key holds no private key in PEM without a passphrase');
  }
  if (!isPair) throw new Error('tls.key is not the key of tls.crt');
  const expiresAt = Date.parse(leaf.validTo);
  if (expiresAt <= now) throw new Error(`tls.crt has expired at ${new Date(expiresAt).toISOString()}`);
  if (leaf.subjectAltName === undefined)
    throw new Error('tls.crt has no subject alternative name: API servers do not read the common name');
  assertServable({ cert: certificate, key }, 'tls.crt and tls.key');
  return { certificate, key, expiresAt };
}

/** Asks TLS itself, which alone judges further certificates and the strength of keys. */
function assertServable(context: SecureContextOptions, what: string): void {
  try {
    createSecureContext(context);
  } catch (error) {
    throw new Error(`${what} cannot be used for TLS: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function leafOf(certificate: string): X509Certificate {
  try {
    return new X509Certificate(certificate);
  } catch {
    throw new Error('tls.crt holds no certificate in PEM');
  }
}

/** Reads the file of authorities whose clients may call. @throws Error */
export function readClientAuthority(pem: string): string {
  // TLS takes a file without any certificate, and then trusts no client.
  if (!pem.includes('-----BEGIN CERTIFICATE-----'))
    throw new Error('the file of the client authority holds no certificate in PEM');
  assertServable({ ca: pem }, 'the client authority');
  return pem;
}

/**
 * Why a client may not call, in words; undefined: it may. `name`: the common name that its
 * certificate must have, where one is demanded.
 */
function clientProblem(socket: TLSSocket, name: string | undefined): string | undefined {
  const { raw, subject } = socket.getPeerCertificate();
  // Asked first: a resumed session without a certificate counts as authorized.
  if (raw === undefined) return 'A client certificate is required, and none was shown.';
  if (!socket.authorized) return `The client certificate is not trusted here: ${String(socket.authorizationError)}.`;
  if (name !== undefined && subject.CN !== name) return 'The client certificate is of another client.';
  return undefined;
}
