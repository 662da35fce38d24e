import type { RequestHandler } from 'express';

/**
 * Enters a router only for these paths and those below them. A router in which nothing matches hands a request on in a later turn of
 * the event loop: every call that passed one on its way would wait for a turn, the longer the busier the process is, and would be
 * counted as in flight only then.
 */
export function belowPath(paths: readonly string[], router: RequestHandler): RequestHandler {
  return function belowLayer(req, res, next) {
    const { path } = req;
    if (paths.some((above) => path.startsWith(above) && (path.length === above.length || path[above.length] === '/')))
      router(req, res, next);
    else next();
  };
}
