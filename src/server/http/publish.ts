import type { RequestHandler } from 'express';
import type { StaticDocument } from '../../resources/resource.ts';
import { sendJson } from './respond.ts';

/** How long readers may go by a document, seconds (contract 7.2). */
const MAX_AGE_S = 300;

/** Serves a document that strangers read and keep: bytes made at start, to be asked for again after `maxAgeS`, five minutes unless given. */
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
