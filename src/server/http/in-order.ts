/** Runs handlers one after the other: what a route of Express does, without a search for it. */

import type { ErrorRequestHandler, RequestHandler } from 'express';

/**
 * One handler that runs all of `handlers`, and then what comes next. As in Express each gets a
 * `next` and may return a promise. `failed` answers what one of them throws, rejects with or passes
 * to `next`; what `failed` throws itself goes on to the handler's own `next`.
 */
export function inOrder(handlers: readonly RequestHandler[], failed: ErrorRequestHandler): RequestHandler {
  return function inOrder(req, res, next) {
    let at = 0;
    const fail = (thrown: unknown): void => {
      try {
        failed(thrown ?? new Error('a handler failed without a reason'), req, res, next);
      } catch (error) {
        next(error);
      }
    };
    const go = (thrown?: unknown): void => {
      const handler = handlers[at];
      if (thrown !== undefined) fail(thrown);
      else if (handler === undefined) next();
      else {
        at += 1;
        try {
          const running: unknown = handler(req, res, go);
          if (running instanceof Promise) running.then(undefined, fail);
        } catch (error) {
          fail(error);
        }
      }
    };
    go();
  };
}
