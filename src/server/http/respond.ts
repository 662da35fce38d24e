/**
 * Writes answers: JSON, the error envelope, documents made at start, pages for people, and answers
 * on bare sockets.
 */

import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import http from 'node:http';
import type { AddressInfo, ListenOptions, Server } from 'node:net';
import type { Duplex } from 'node:stream';
import type { RequestHandler, Response } from 'express';
import { errorEnvelope, type GatewayError } from '../../errors.ts';
import type { StaticDocument } from '../../resources/static-document.ts';
import { noteOutcome, onceClosed } from './access-record.ts';

/** Makes browsers go by the type of a body alone, and not by its bytes. */
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

/**
 * Sends the error envelope (contract 1.1), to a person as a page. Behind a head it breaks the
 * connection instead.
 */
export function sendError(res: Response, error: GatewayError, requestId: string, resourceId?: string): void {
  noteOutcome(res, error.code);
  if (res.headersSent) {
    res.destroy();
    return;
  }
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value);
  res.setHeader('cache-control', 'no-store');
  varyByAccept(res);
  const envelope = errorEnvelope(error, requestId, resourceId);
  if (acceptsPage(res.req.headers)) sendText(res, error.status, PAGE_HEADERS, errorPage(error.status, envelope));
  else sendJson(res, error.status, JSON.stringify(envelope));
}

/** States that the answer depends on Accept; Express's `vary` parses even where none is there. */
export function varyByAccept(res: Response): void {
  if (res.hasHeader('vary')) res.vary('Accept');
  else res.setHeader('vary', 'Accept');
}

function errorPage(status: number, { code, message, requestId }: ReturnType<typeof errorEnvelope>): string {
  const text = `<p>${escapedHtml(message)}</p><p>${code}, request ${escapedHtml(requestId)}</p>`;
  return `${pageOpening(String(status))}<h1>${status}</h1>${text}${PAGE_CLOSING}`;
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
 * The part of an AbortSignal that calls use. It watches the connection from its first listener on:
 * an AbortController costs a call more than all other objects of an adapter.
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

/** The largest body that is copied into one piece with its head, bytes. */
export const COPIED_BYTES = 16_384;

/** A string goes out in one write with the head; for more bytes a second write costs less. */
export function endWith(res: ServerResponse, bytes: Uint8Array): void {
  if (bytes.byteLength > COPIED_BYTES) res.end(bytes);
  else res.end(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1'), 'latin1');
}

/** The length of names, values and separators, bytes; a value is latin1. */
export function fieldsBytes(fields: Readonly<Record<string, string | number>>): number {
  let bytes = 0;
  for (const name in fields) bytes += fieldBytes(name, String(fields[name]));
  return bytes;
}

export function fieldBytes(name: string, value: string): number {
  return name.length + value.length + ': \r\n'.length;
}

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:3em auto;padding:0 1em}' +
  'dt{font-weight:bold}dd{margin:0 0 .5em;overflow-wrap:anywhere}pre{overflow:auto;padding:1em;background:#eee}';
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** The one style is named by its digest. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
} as const;

/** A page up to where its text begins. */
export function pageOpening(title: string): string {
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapedHtml(title)}</title>` +
    `<style>${STYLE}</style></head><body>`
  );
}

export const PAGE_CLOSING = '</body></html>\n';

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escapedHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

/** How long a connection outlasts its last answer, for an upload or a late close, milliseconds. */
export const LINGER_MS = 1_000;

/** Writes the error envelope on a socket that Node no longer watches, and ends the connection. */
export function answerOnSocket(socket: Duplex, refusal: GatewayError, requestId: string): void {
  const body = JSON.stringify(errorEnvelope(refusal, requestId));
  const head = [
    `HTTP/1.1 ${refusal.status} ${http.STATUS_CODES[refusal.status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    ...Object.entries(refusal.headers).map(([name, value]) => `${name}: ${value}`),
    'cache-control: no-store',
    'x-content-type-options: nosniff',
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  const lingers = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(lingers));
}

/** Resolves with the address of the server; rejects with the error of the system. */
export function listenOn(server: Server, at: ListenOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, () => {
      server.off('error', reject);
      resolve(server.address() as AddressInfo);
    });
  });
}

/** One element of the list, with commas in quotes inside it. */
const ELEMENT = /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g;
const PARAMETER = /(?:[^;"]|"(?:[^"\\]|\\.)*"?)+/g;
/** RFC 9110, 12.4.2. */
const WEIGHT = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/i;

/** Headers of a payment proof, in both versions of x402. */
const PROOFS = ['payment-signature', 'x-payment'] as const;

/**
 * Whether an answer is written for a person: `text/html` is named with a weight above 0,
 * `application/json` is not, and no proof came. Wildcards say nothing: programs send them.
 */
export function acceptsPage(headers: IncomingHttpHeaders): boolean {
  const { accept } = headers;
  // Most programs name no HTML, and few of their headers need to be read in parts.
  if (accept === undefined || !/text\/html/i.test(accept)) return false;
  if (PROOFS.some((name) => headers[name] !== undefined)) return false;
  const named = new Map((accept.match(ELEMENT) ?? []).map(readElement));
  return (named.get('text/html') ?? 0) > 0 && (named.get('application/json') ?? 0) === 0;
}

/** A media range in lower case and its weight; 0 for an invalid weight. */
function readElement(element: string): readonly [range: string, weight: number] {
  const [range = '', ...parameters] = (element.match(PARAMETER) ?? []).map((part) => part.trim());
  const weight = parameters.find((parameter) => /^q\s*=/i.test(parameter));
  const value = weight === undefined ? '1' : WEIGHT.exec(weight)?.[1];
  return [range.toLowerCase(), Number(value ?? 0)];
}
