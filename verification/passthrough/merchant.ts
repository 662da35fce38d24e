/** A merchant of the slip table: an HTTP server that notes what reached it and what it executed. */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The header that names a case: merchants note under it what became of the request. */
export const CASE_HEADER = 'x-case';

/** A request as it came to the merchant. */
export interface Arrival {
  readonly method: string;
  readonly target: string;
  /** Of its body, what has come so far. */
  body(): Buffer;
}

/** Notes that a sold operation ran for this request. */
export type Ran = (req: IncomingMessage) => void;

/** The same three operations, served by one framework in one way of routing. */
export interface MerchantKind {
  readonly name: string;
  build(ran: Ran): RequestListener | Promise<RequestListener>;
}

export interface Merchant {
  readonly name: string;
  readonly port: number;
  /** The cases for which a sold operation ran. */
  readonly executed: ReadonlySet<number>;
  readonly arrivals: ReadonlyMap<number, Arrival>;
  /** Forgets what it noted. */
  reset(): void;
  close(): Promise<void>;
}

/** Starts a merchant on a free port of loopback. */
export async function startMerchant({ name, build }: MerchantKind): Promise<Merchant> {
  const executed = new Set<number>();
  const arrivals = new Map<number, Arrival>();
  const listener = await build((req) => void executed.add(caseOf(req)));
  const server = createServer({ keepAliveTimeout: 60_000 }, (req, res) => {
    arrivals.set(
      caseOf(req),
      arrivalOf(req, () => listener(req, res)),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    name,
    port: (server.address() as AddressInfo).port,
    executed,
    arrivals,
    reset() {
      executed.clear();
      arrivals.clear();
    },
    close: () => closed(server),
  };
}

/** Ends a server and its connections. */
export async function closed(server: Server): Promise<void> {
  const ended = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await ended;
}

function caseOf({ headers }: IncomingMessage): number {
  return Number(headers[CASE_HEADER] ?? -1);
}

/**
 * Watches the body on its way to the framework, which may answer without a look at it; so the
 * framework is asked when the body is complete. Bodies of the table fit the buffer of a request.
 */
function arrivalOf(req: IncomingMessage, onComplete: () => void): Arrival {
  const chunks: Uint8Array[] = [];
  const push = req.push.bind(req);
  req.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk instanceof Uint8Array) chunks.push(chunk);
    const wantsMore = push(chunk, encoding);
    if (chunk === null) onComplete();
    return wantsMore;
  };
  return { method: req.method ?? '', target: req.url ?? '', body: () => Buffer.concat(chunks) };
}
