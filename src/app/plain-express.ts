/** Parts that both apps of a gateway share: a bare Express, and the handler of unknown routes. */

import express, { type Express, type Router } from 'express';
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

/** A router that matches paths as `plainExpress` does and has no middleware of its own. */
export function plainRouter(): Router {
  return express.Router({ strict: true, caseSensitive: true });
}

/** The end of an app: no route took the request. @throws GatewayError NOT_FOUND */
export function noRoute(): never {
  throw new GatewayError('NOT_FOUND');
}
