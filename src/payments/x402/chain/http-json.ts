/** JSON over kept-alive HTTP to one peer: the chain node or a facilitator. */

import { Pool } from 'undici';
import { readStrictJson } from '../../../json/strict.ts';
import type { Json } from '../../../json/types.ts';

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
    async exchange({ method, path, body, headers = {}, deadlineMs }) {
      const answer = await pool.request({
        method,
        path: `${prefix}${path}${search}` || '/',
        headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(Math.max(1, Math.ceil(deadlineMs))),
        // `signal` covers both.
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      const chunks: Buffer[] = [];
      let length = 0;
      for await (const chunk of answer.body as AsyncIterable<Buffer>) {
        length += chunk.byteLength;
        // Leaving the loop destroys the body, and with it the connection.
        if (length > maxAnswerBytes) throw new OversizedAnswer(maxAnswerBytes);
        chunks.push(chunk);
      }
      return { status: answer.statusCode, json: readStrictJson(Buffer.concat(chunks)) };
    },
    close: () => pool.destroy(),
  };
}
