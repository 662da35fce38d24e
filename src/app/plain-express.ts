/** What both apps of a gateway share: a bare Express, and the handler of unknown routes. */

import express, { type Express, type Request, type RequestHandler, type Router } from 'express';
import { GatewayError } from '../errors.ts';

/**
 * Express without what agents do not need: no banner, no computed ETags, no nested queries, paths
 * matched as they are written.
 */
export function plainExpress(): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false);
  app.enable('strict routing');
  app.enable('case sensitive routing');
  return app;
}

/** A router that matches paths as `plainExpress` does, with what is registered on it alone. */
export function plainRouter(): Router {
  return express.Router({ strict: true, caseSensitive: true });
}

/** The routes of one generation. */
export interface Routes {
  readonly router: Router;
  /** What takes a request past the router; undefined for most. */
  readonly shortcut: (req: Request) => RequestHandler | undefined;
}

/**
 * Opens routes that others can take the place of, from one request to the next. An app is replaced
 * inside: the listener makes requests and responses with the prototypes of one Express, and a
 * request that has begun goes on in the routes that it entered.
 */
export function replaceableRoutes(first: Routes) {
  let present = first;
  const handler: RequestHandler = function presentRouter(req, res, next) {
    const take = present.shortcut(req) ?? present.router;
    take(req, res, next);
  };
  // As on a router, for what walks over the routes of an app.
  Object.defineProperty(handler, 'stack', { get: () => present.router.stack });
  return {
    handler,
    replace(routes: Routes): void {
      present = routes;
    },
  };
}

/** The end of an app: no route took the request. @throws GatewayError NOT_FOUND */
export function noRoute(): never {
  throw new GatewayError('NOT_FOUND');
}
