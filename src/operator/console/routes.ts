/** Serves the operators' console: one page and its files, bytes made at start. */

import { readFileSync } from 'node:fs';
import { type RequestHandler, Router } from 'express';
import { GatewayError } from '../../errors.ts';
import { type StaticDocument, staticText } from '../../resources/static-document.ts';
import { allowOnly, singleHeader } from '../../server/http/request.ts';
import { staticDocument } from '../../server/http/respond.ts';

/**
 * The page may load these files and ask its own gateway. No script or style in the markup, nothing
 * of another origin, no form that is sent, no frame around it, and no text that becomes markup.
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
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const;

/** A file of the console as it is served. */
interface ConsoleFile {
  readonly path: string;
  readonly mediaType: string;
  readonly document: StaticDocument;
}

const STYLE = 'text/css; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';

/** All files that are served, each in a call of the spelling that the bundle inlines. */
export const CONSOLE_FILES: readonly ConsoleFile[] = [
  page('text/html; charset=utf-8', readFileSync(new URL('./console.html', import.meta.url), 'utf8')),
  file('page.css', STYLE, readFileSync(new URL('./page.css', import.meta.url), 'utf8')),
  file('tables.css', STYLE, readFileSync(new URL('./tables.css', import.meta.url), 'utf8')),
  file('charts.css', STYLE, readFileSync(new URL('./charts.css', import.meta.url), 'utf8')),
  file('icon.svg', 'image/svg+xml', readFileSync(new URL('./icon.svg', import.meta.url), 'utf8')),
  file('calls-view.js', SCRIPT, readFileSync(new URL('./calls-view.js', import.meta.url), 'utf8')),
  file('calls.js', SCRIPT, readFileSync(new URL('./calls.js', import.meta.url), 'utf8')),
  file('chart-view.js', SCRIPT, readFileSync(new URL('./chart-view.js', import.meta.url), 'utf8')),
  file('charts.js', SCRIPT, readFileSync(new URL('./charts.js', import.meta.url), 'utf8')),
  file('console.js', SCRIPT, readFileSync(new URL('./console.js', import.meta.url), 'utf8')),
  file('dom.js', SCRIPT, readFileSync(new URL('./dom.js', import.meta.url), 'utf8')),
  file('format.js', SCRIPT, readFileSync(new URL('./format.js', import.meta.url), 'utf8')),
  file('gateway.js', SCRIPT, readFileSync(new URL('./gateway.js', import.meta.url), 'utf8')),
  file('history.js', SCRIPT, readFileSync(new URL('./history.js', import.meta.url), 'utf8')),
  file('receipts-view.js', SCRIPT, readFileSync(new URL('./receipts-view.js', import.meta.url), 'utf8')),
  file('receipts.js', SCRIPT, readFileSync(new URL('./receipts.js', import.meta.url), 'utf8')),
  file('session.js', SCRIPT, readFileSync(new URL('./session.js', import.meta.url), 'utf8')),
];

/**
 * The page at `/console` and its files below it. They hold no secret and need no token: the page
 * reads its data from the operator routes. Without a configured token these are closed, and there
 * is no console. `site`: the origin at which pages of the backend pass; a script of such a page
 * could take the token there, so the console is refused at its host.
 */
export function consoleRoutes(adminTokens: readonly string[], site?: string): Router {
  const router = Router({ strict: true, caseSensitive: true });
  if (adminTokens.length === 0) return router;
  if (site !== undefined) router.use(refuseHost(new URL(site)));
  for (const { path, mediaType, document } of CONSOLE_FILES) {
    const serve = staticDocument(() => document, mediaType);
    router.get(path, guarded, serve);
    router.all(path, allowOnly('GET', 'HEAD'));
  }
  return router;
}

/** Browsers leave out the usual port of a scheme; others may write it. */
function refuseHost({ protocol, host }: URL): RequestHandler {
  const usualPort = protocol === 'https:' ? ':443' : ':80';
  return function refuseHost(req, _res, next) {
    const asked = singleHeader(req, 'host')?.toLowerCase();
    if (asked === host || asked === `${host}${usualPort}`)
      throw new GatewayError('FORBIDDEN', {
        message:
          'Pages of the backend pass at this host: open the console at another one, as kubectl port-forward gives it.',
      });
    next();
  };
}

const guarded: RequestHandler = function guardedPage(_req, res, next) {
  for (const [name, value] of Object.entries(HEADERS)) res.setHeader(name, value);
  next();
};

function page(mediaType: string, text: string): ConsoleFile {
  return { path: '/console', mediaType, document: staticText(text) };
}

function file(name: string, mediaType: string, text: string): ConsoleFile {
  return { path: `/console/${name}`, mediaType, document: staticText(text) };
}
