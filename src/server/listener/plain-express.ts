import type { Express } from 'express';

/** Express without what agents do not need: no banner, no computed ETags, no nested queries; paths are what they say. */
export function plainExpress(app: Express): Express {
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false);
  app.enable('strict routing');
  app.enable('case sensitive routing');
  return app;
}
