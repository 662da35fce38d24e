import { type RequestHandler, Router } from 'express';
import { allowOnly } from '../../server/http/methods.ts';
import { staticDocument } from '../../server/http/respond.ts';
import { CONSOLE_FILES } from './files.ts';

/**
 * What the page may do: load these files, and ask the gateway it came from. No script or style in the markup, nothing of another
 * origin, no form that is sent, no frame around it, and no text that becomes markup.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const;

/**
 * The operators' console: a page at `/console` and its files below it, bytes made at start. It holds nothing secret and needs no
 * token; what it shows it reads from the operator routes. Without a configured token those are closed, and there is no console.
 */
export function consoleRoutes(adminTokens: readonly string[]): Router {
  const router = Router({ strict: true, caseSensitive: true });
  if (adminTokens.length === 0) return router;
  for (const { path, mediaType, document } of CONSOLE_FILES) {
    const serve = staticDocument(() => document, mediaType);
    router.get(path, guarded, serve);
    router.all(path, allowOnly('GET', 'HEAD'));
  }
  return router;
}

const guarded: RequestHandler = function guardedPage(_req, res, next) {
  for (const [name, value] of Object.entries(HEADERS)) res.setHeader(name, value);
  next();
};
