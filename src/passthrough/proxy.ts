/** The proxy itself: http-proxy-middleware with the settings and listeners of the gateway. */

import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Request, Response } from 'express';
import { createProxyMiddleware, type Plugin } from 'http-proxy-middleware';

/** Learns what becomes of one request, or of one upgrade. */
interface ProxyListener {
  /** A connection is there: headers are not sent yet, and the body is not yet piped. */
  connected(toBackend: ClientRequest): void;
  /** The head of the answer is there, which the listener relays. Upgrades have `toBackend`. */
  answered?(answer: IncomingMessage): void;
  /** It failed, before or after the answer began. */
  failed(cause: unknown): void;
}

/**
 * How long a connection may stay unused, milliseconds. Below what servers use (5 s in Node, 2 s or
 * more elsewhere): a request that meets the backend's close fails, and only some may be repeated.
 */
const UNUSED_MS = 1_500;
/** Connections that are kept for the next requests. */
const MAX_UNUSED = 64;

export type BackendProxy = ReturnType<typeof createProxy>;

/** `origin`: scheme, host and port of the backend. */
export function createProxy(origin: string) {
  // Not bounded here: who waits for a connection in its queue could not be ended from outside.
  const agent = new http.Agent({ keepAlive: true, maxFreeSockets: MAX_UNUSED, timeout: UNUSED_MS });
  const middleware = createProxyMiddleware<Request, Response>({
    // Not the text, which would be read as a URL twice for each request.
    target: new URL(origin),
    agent,
    // The library copies each field by its own, and pipes what is there already.
    selfHandleResponse: true,
    pathRewrite: (_path, req: Carried) => req[PROXIED]?.target ?? '/',
    // The default plugins write answers and a log of their own.
    ejectPlugins: true,
    plugins: [notifyListeners],
  });
  return {
    /** Sends a request whose headers and target are those for the backend. */
    send(req: Request, res: Response, listener: ProxyListener): void {
      carry(req, listener);
      middleware(req, res, (error) => listener.failed(error)).catch((error: unknown) => listener.failed(error));
    },
    /** The same for a WebSocket; `head`: what came behind the request. */
    upgrade(req: IncomingMessage, socket: Socket, head: Buffer, listener: ProxyListener): void {
      carry(req, listener);
      middleware.upgrade(req as Request, socket, head);
    },
    /** Closes all connections: what runs fails. */
    close: () => agent.destroy(),
  };
}

/** What a request carries through the library; on the request itself, where it costs least. */
const PROXIED = Symbol('what is proxied');

interface Carried extends IncomingMessage {
  [PROXIED]?: { readonly listener: ProxyListener; readonly target: string | undefined };
}

/**
 * Before it proxies, the library reads `req.url` as a URL and skips a request where it is none, as
 * in `//a%20b`. So it reads `/`, and is given the target as the rewritten path.
 */
function carry(req: Carried, listener: ProxyListener): void {
  req[PROXIED] = { listener, target: req.url };
  req.url = '/';
}

/** Hands the events of the proxy to the listener of the request that they are about. */
const notifyListeners: Plugin<Request, Response> = (proxy) => {
  const listenerOf = (req?: Carried): ProxyListener | undefined => req?.[PROXIED]?.listener;
  proxy.on('proxyReq', (toBackend, req) => listenerOf(req)?.connected(toBackend));
  proxy.on('proxyReqWs', (toBackend, req) => listenerOf(req)?.connected(toBackend));
  proxy.on('proxyRes', (answer, req) => listenerOf(req)?.answered?.(answer));
  proxy.on('econnreset', (error, req) => listenerOf(req)?.failed(error));
  proxy.on('error', (error, req) => listenerOf(req)?.failed(error));
};
