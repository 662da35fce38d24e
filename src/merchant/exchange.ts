import type { LookupFunction } from 'node:net';
import { type Dispatcher, Pool } from 'undici';
import { createFrame } from './frame.ts';
import { HeldBackAnswers } from './held-back.ts';
import { Hop, type Road } from './hop.ts';
import { SocketQueue } from './socket-queue.ts';
import { BackendError, type Exchange } from './types.ts';
import { Connection, Wire } from './wire.ts';

/** Most sockets to one backend origin (CONTRACT 3). */
export const MAX_BACKEND_SOCKETS = 256;

/** The way to the merchant. */
export interface MerchantHop {
  readonly exchange: Exchange;
  /** Exchanges whose last byte has not come yet, those in the queue included. */
  inFlight(): number;
  /** Refuses new exchanges (`unreachable`), waits for the running ones, closes the sockets. May be called again. */
  close(): Promise<void>;
  /** Ends what still runs (`transport`) and closes the sockets. */
  abort(): Promise<void>;
}

/**
 * Opens the way to one merchant: http-proxy-middleware as frame, undici as transport. `origin`: scheme, host and port of the backend;
 * redirects are never followed, so nothing else is ever contacted. Its name is resolved at every connection (`resolve`: `dns.lookup`
 * unless given), and never to a link-local or metadata address. `reuse: false` opens a connection for each exchange: a side effect must
 * not meet a socket that the merchant closes in the same moment, where nobody can tell whether it was sent (acp.md 13.3).
 */
export function createExchange(options: {
  readonly origin: string;
  readonly maxSockets?: number;
  readonly resolve?: LookupFunction;
  readonly reuse?: boolean;
}): MerchantHop {
  const origin = new URL(options.origin);
  const maxSockets = options.maxSockets ?? MAX_BACKEND_SOCKETS;
  const pool = new Pool(origin, {
    connections: maxSockets,
    factory: (to) => new Connection(to, new Wire(options.resolve), options.reuse),
  });
  // A number, not a set of hops: tables that grow and shrink with every call keep dead calls alive until a full collection.
  let running = 0;
  const enter = createFrame<Hop>(origin, (hop) => pool.dispatch(outgoing(hop, origin.host), hop));
  const sockets = new SocketQueue(maxSockets);
  const road: Road = {
    sockets,
    heldBack: new HeldBackAnswers(() => sockets.wanted),
    send: (hop) => enter(hop, (cause) => hop.fail('transport', cause)),
    ended() {
      running -= 1;
    },
  };
  let closed: Promise<void> | undefined;
  return {
    exchange(request, limits) {
      if (limits.signal?.aborted) return Promise.reject(new BackendError('aborted', false));
      const hop = new Hop(request, limits, road);
      running += 1;
      hop.begin();
      return hop.answer;
    },
    inFlight: () => running,
    close: () => (closed ??= pool.close()),
    abort: () => (closed = pool.destroy()),
  };
}

/** The request as it goes out. Host and Content-Length are ours alone, whatever the prepared headers say; the body is never chunked. */
function outgoing({ request }: Hop, host: string): Dispatcher.DispatchOptions {
  const { method, path, headers, body } = request;
  return { method, path, headers: { ...headers, host, 'content-length': undefined }, body: body ?? null };
}
