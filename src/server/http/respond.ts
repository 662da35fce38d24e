/** Sends whole answers: JSON, the error envelope, documents made at start. */

import type { RequestHandler, Response } from 'express';
import { errorEnvelope, type GatewayError } from '../../errors.ts';
import type { StaticDocument } from '../../resources/static-document.ts';
import { noteOutcome } from './access-record.ts';
import { onceClosed } from './once-closed.ts';

/** Browsers take a body for what its type says, and for nothing that its bytes resemble. */
export const NO_SNIFFING = { 'x-content-type-options': 'nosniff' } as const;
export const JSON_HEAD = { 'content-type': 'application/json; charset=utf-8' } as const;

/** Sends JSON text with its length; a HEAD gets the head alone, a closed connection nothing. */
export function sendJson(res: Response, status: number, body: string | Uint8Array): void {
  sendText(res, status, JSON_HEAD, body);
}

/**
 * Sends a whole body with its length. Pure ASCII is written as latin1, which is the same bytes and
 * costs half: it goes out in one piece with the head.
 */
export function sendText(
  res: Response,
  status: number,
  head: Readonly<Record<string, string>>,
  body: string | Uint8Array,
): void {
  if (res.destroyed || res.headersSent) return;
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
  res.writeHead(status, { ...NO_SNIFFING, ...head, 'content-length': length });
  if (res.req.method === 'HEAD') res.end();
  else if (typeof body === 'string') res.end(body, length === body.length ? 'latin1' : 'utf8');
  else res.end(body);
}

/** Sends the error envelope (contract 1.1). Behind a head it breaks the connection instead. */
export function sendError(res: Response, error: GatewayError, requestId: string, resourceId?: string): void {
  noteOutcome(res, error.code);
  if (res.headersSent) {
    res.destroy();
    return;
  }
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value);
  res.setHeader('cache-control', 'no-store');
  sendJson(res, error.status, JSON.stringify(errorEnvelope(error, requestId, resourceId)));
}

/** Serves bytes with a strong ETag and 304. `mediaType`: JSON unless given. */
export function staticDocument(document: () => StaticDocument, mediaType?: string): RequestHandler {
  const head = mediaType === undefined ? JSON_HEAD : { 'content-type': mediaType };
  return function staticDocumentHandler(req, res) {
    const { bytes, etag } = document();
    res.setHeader('etag', etag);
    res.setHeader('cache-control', 'no-cache');
    if (matches(req.headers['if-none-match'], etag)) {
      res.writeHead(304);
      res.end();
      return;
    }
    sendText(res, 200, head, bytes);
  };
}

/** RFC 9110, 13.1.2: a list of entity tags, compared weakly, or `*`. */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((tag) => {
    const candidate = tag.trim().replace(/^W\//, '');
    return candidate === '*' || candidate === etag;
  });
}

/** How long readers may use a copy of a document, seconds (contract 7.2). */
const MAX_AGE_S = 300;

/** Serves a public document that readers may keep for `maxAgeS`, five minutes unless given. */
export function published(
  { bytes, etag }: StaticDocument,
  startedAt: Date,
  maxAgeS: number = MAX_AGE_S,
): RequestHandler {
  const lastModified = startedAt.toUTCString();
  const cacheControl = `public, max-age=${maxAgeS}`;
  return function publishedDocument(req, res) {
    res.setHeader('etag', etag);
    res.setHeader('last-modified', lastModified);
    res.setHeader('cache-control', cacheControl);
    if (req.fresh) {
      res.writeHead(304);
      res.end();
      return;
    }
    sendJson(res, 200, bytes);
  };
}

/** Aborted when the connection closes before the answer was sent. */
export function clientGone(res: Response): ClientGone {
  return new ClientGone(res);
}

/**
 * As much of an AbortSignal as is used of it. The connection is watched only while something
 * listens here: a controller with its signal costs a call more than all else that an adapter makes.
 */
class ClientGone {
  readonly #res: Response;
  #listeners: Set<() => void> | undefined;

  constructor(res: Response) {
    this.#res = res;
  }

  get aborted(): boolean {
    return this.#res.closed && !this.#res.writableFinished;
  }

  /** The listener is called once at most. */
  addEventListener(_type: 'abort', listener: () => void): void {
    const listeners = this.#listeners ?? this.#watch();
    listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners?.delete(listener);
  }

  #watch(): Set<() => void> {
    const listeners = new Set<() => void>();
    this.#listeners = listeners;
    onceClosed(this.#res, () => {
      if (this.aborted) for (const listener of listeners) listener();
    });
    return listeners;
  }
}
