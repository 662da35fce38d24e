import type { RequestHandler } from 'express';
import type { StaticDocument } from '../catalogue/resource.ts';
import { sendJson } from './respond.ts';

/** How long readers may go by a document (CONTRACT 7.2). */
const CACHE_CONTROL = 'public, max-age=300';

/** Serves a document that strangers read and keep: bytes made at start, to be asked for again after five minutes. */
export function published({ bytes, etag }: StaticDocument, startedAt: Date): RequestHandler {
  const lastModified = startedAt.toUTCString();
  return function publishedDocument(req, res) {
    res.setHeader('etag', etag);
    res.setHeader('last-modified', lastModified);
    res.setHeader('cache-control', CACHE_CONTROL);
    if (req.fresh) {
      res.writeHead(304);
      res.end();
      return;
    }
    sendJson(res, 200, bytes);
  };
}
