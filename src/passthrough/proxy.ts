/** The proxy itself: http-proxy-middleware with the settings and listeners of the gateway. */

import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Request, Response } from 'express';
import { createProxyMiddleware, type Plugin } from 'http-proxy-middleware';

/** Learns what becomes of one request, or of one upgrade. */
export interface ProxyListener {
  /** A connection is there: headers are not sent yet, and the body is not yet piped. */
  connected(toBackend: ClientRequest): void;
  /** The head of the answer is there, and not yet copied. Upgrades learn it from `toBackend`. */
  answered?(answer: IncomingMessage): void;
  /** It failed, before or after the answer began. */
  failed(cause: unknown): void;
}

export interface BackendProxy {
  /** Sends a request whose headers and target are those for the backend. */
  send(req: Request, res: Response, listener: ProxyListener): void;
  /** The same for a WebSocket; `head`: what came behind the request. */
  upgrade(req: IncomingMessage, socket: Socket, head: Buffer, listener: ProxyListener): void;
  /** Closes idle connections. */
  close(): void;
}

/**
 * How long a connection may stay unused, milliseconds. Below what servers use (5 s in Node, 2 s or
 * more elsewhere): a request that meets the backend's close fails, and only some may be repeated.
 */
const UNUSED_MS = 1_500;
/** Connections that are kept for the next requests. */
const MAX_UNUSED = 64;

/** `origin`: scheme, host and port of the backend. */
export function createProxy(origin: string): BackendProxy {
  const listeners = new WeakMap<IncomingMessage, ProxyListener>();
  // Not bounded here: who waits for a connection in its queue could not be ended from outside.
  const agent = new http.Agent({ keepAlive: true, maxFreeSockets: MAX_UNUSED, timeout: UNUSED_MS });
  const middleware = createProxyMiddleware<Request, Response>({
    target: origin,
    agent,
    // The default plugins write answers and a log of their own.
    ejectPlugins: true,
    plugins: [listenWith(listeners)],
  });
  return {
    send(req, res, listener) {
      listeners.set(req, listener);
      middleware(req, res, (error) => listener.failed(error)).catch((error: unknown) => listener.failed(error));
    },
    upgrade(req, socket, head, listener) {
      listeners.set(req, listener);
      middleware.upgrade(req as Request, socket, head);
    },
    close: () => agent.destroy(),
  };
}

/** Hands the events of the proxy to the listener of the request that they are about. */
function listenWith(listeners: WeakMap<IncomingMessage, ProxyListener>): Plugin<Request, Response> {
  return function notifyListeners(proxy) {
    proxy.on('proxyReq', (toBackend, req) => listeners.get(req)?.connected(toBackend));
    proxy.on('proxyReqWs', (toBackend, req) => listeners.get(req)?.connected(toBackend));
    proxy.on('proxyRes', (answer, req) => listeners.get(req)?.answered?.(answer));
    proxy.on('econnreset', (error, req) => listeners.get(req)?.failed(error));
    proxy.on('error', (error, req) => {
      if (req !== undefined) listeners.get(req)?.failed(error);
    });
  };
}
