/** JSON over kept-alive HTTP to one peer: the chain node or a facilitator. */

import type { IncomingHttpHeaders } from 'node:http';
import { type Dispatcher, Pool } from 'undici';
import { type Json, readStrictJson } from '../../../json/json.ts';
import { type RunningDeadline, startDeadline } from '../../../time/time.ts';

/** Most connections to a peer: one per running settlement (112), and some for readings. */
export const PEER_CONNECTIONS = 128;
/** Longest wait for a connection, milliseconds. */
const CONNECT_TIMEOUT_MS = 2_000;
/** Below the usual 5 s of the other side, so that no call uses a socket that is being closed. */
const KEEP_ALIVE_MS = 4_000;

/** One request to a peer that speaks JSON. */
export interface JsonRequest {
  readonly method: 'GET' | 'POST';
  /** Added to the path of the base URL, for example `/verify`. */
  readonly path: string;
  /** Serialised as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** From now to the last byte of the answer, milliseconds. */
  readonly deadlineMs: number;
}

/** An answer of any status. `json` is undefined when the body is not strict JSON. */
export interface JsonAnswer {
  readonly status: number;
  readonly json: Json | undefined;
  /** The Location header, as it was sent. */
  readonly location?: string | undefined;
}

/** A peer behind one base URL, over kept-alive connections. */
export interface JsonPeer {
  /**
   * Follows no redirect, reads at most the cap. Rejects when no complete answer came; the request
   * may have arrived all the same.
   */
  exchange(request: JsonRequest): Promise<JsonAnswer>;
  close(): Promise<void>;
}

/** The answer passed the cap. */
export class OversizedAnswer extends Error {
  constructor(maxBytes: number) {
    super(`the answer is larger than ${maxBytes} bytes`);
    this.name = 'OversizedAnswer';
  }
}

/** Opens no connection before the first request. Keeps credentials and query of the URL. */
export function createJsonPeer(baseUrl: string, maxAnswerBytes: number): JsonPeer {
  const { origin, pathname, search } = new URL(baseUrl);
  const prefix = pathname.replace(/\/+$/, '');
  const pool = new Pool(origin, {
    connections: PEER_CONNECTIONS,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
  });
  return {
    exchange({ method, path, body, headers = {}, deadlineMs }) {
      const { promise, ...settle } = Promise.withResolvers<JsonAnswer>();
      const asking = new Asking(maxAnswerBytes, deadlineMs, settle);
      pool.dispatch(
        {
          method,
          path: `${prefix}${path}${search}` || '/',
          headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          // The deadline covers head and body.
          headersTimeout: 0,
          bodyTimeout: 0,
        },
        asking,
      );
      return promise;
    },
    close: () => pool.destroy(),
  };
}

/**
 * Orders peers of which each can answer: as given, but one that failed goes last for a while.
 * @param backMs how long a peer that failed goes last, milliseconds
 * @param now Milliseconds of a monotonic clock.
 */
export function peersInOrder<Peer>(peers: readonly Peer[], backMs: number, now: () => number) {
  const failedAt = new Map<Peer, number>();
  return {
    /** All peers; those that failed lately go last, the earliest failure first. */
    order(): readonly Peer[] {
      if (failedAt.size === 0) return peers;
      const at = now();
      const back = (peer: Peer): number => {
        const failed = failedAt.get(peer);
        return failed === undefined || at - failed >= backMs ? -1 : failed;
      };
      return peers.toSorted((a, b) => back(a) - back(b));
    },
    failed: (peer: Peer) => void failedAt.set(peer, now()),
    answered: (peer: Peer) => void failedAt.delete(peer),
  };
}

/** One request under way. It ends once: with its answer, or with the first failure. */
class Asking implements Dispatcher.DispatchHandler {
  readonly #maxBytes: number;
  readonly #settle: Pick<PromiseWithResolvers<JsonAnswer>, 'resolve' | 'reject'>;
  readonly #deadline: RunningDeadline;
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #location: string | undefined;
  #length = 0;
  #failure: Error | undefined;

  constructor(
    maxBytes: number,
    deadlineMs: number,
    settle: Pick<PromiseWithResolvers<JsonAnswer>, 'resolve' | 'reject'>,
  ) {
    this.#maxBytes = maxBytes;
    this.#settle = settle;
    this.#deadline = startDeadline(deadlineMs, () =>
      this.#fail(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
    );
  }

  /** The request is about to be written. Throwing withdraws one that failed before its turn. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#failure !== undefined) throw this.#failure;
    this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, { location }: IncomingHttpHeaders): void {
    this.#status = status;
    this.#location = location;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#length += chunk.byteLength;
    if (this.#length > this.#maxBytes) this.#fail(new OversizedAnswer(this.#maxBytes));
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#deadline.end();
    const [first = Buffer.alloc(0)] = this.#chunks;
    const bytes = this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : first;
    this.#settle.resolve({ status: this.#status, json: readStrictJson(bytes), location: this.#location });
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#deadline.end();
    this.#settle.reject(this.#failure ?? error);
  }

  /** Rejects the request, and ends its connection if it has one. */
  #fail(failure: Error): void {
    this.#failure = failure;
    this.#deadline.end();
    this.#settle.reject(failure);
    this.#controller?.abort(failure);
  }
}
